#include "pipeline/loss_scale.h"

namespace siphon {

LossScale AfterStep(LossScale scale, StepTaken taken) {
  if (taken == StepTaken::kSkipped) {
    scale.scale /= 2;
    scale.fine_steps = 0;
    ++scale.skipped_steps;
    return scale;
  }
  if (++scale.fine_steps < kStepsToGrow) return scale;
  scale.scale *= 2;
  scale.fine_steps = 0;
  return scale;
}

}  // namespace siphon
