#include "planner/simulator/simulated_step.h"

namespace siphon {

absl::string_view WaitCauseName(WaitCause cause) {
  switch (cause) {
    case WaitCause::kPredecessor:
      return "predecessor";
    case WaitCause::kTransfer:
      return "transfer";
    case WaitCause::kSwap:
      return "swap";
    case WaitCause::kStepEnd:
      return "step end";
  }
  return "unknown cause";
}

}  // namespace siphon
