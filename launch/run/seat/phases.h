#ifndef SIPHON_LAUNCH_RUN_SEAT_PHASES_H_
#define SIPHON_LAUNCH_RUN_SEAT_PHASES_H_

#include <string>
#include <vector>

#include "launch/run/seat/worker_seat.h"

namespace siphon {

// Phases of a run outside its actions (WorkerSeat::at_phase), beside those of worker_seat.h.
inline constexpr char kMakingPhase[] = "making its stages";
inline constexpr char kReadingPhase[] = "reading the checkpoint";
inline constexpr char kOpeningPhase[] = "opening its output";
inline constexpr char kValidationPhase[] = "validation";
inline constexpr char kWritingPhase[] = "writing a checkpoint";
inline constexpr char kCompletingPhase[] = "completing a checkpoint";

// All of them.
inline std::vector<std::string> RunPhases() {
  return {kMakingPhase,  kLendingPhase, kHostMemoryPhase, kDrivePhase,   kReadingPhase,
          kOpeningPhase, kMovingPhase,  kValidationPhase, kWritingPhase, kCompletingPhase};
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_PHASES_H_
