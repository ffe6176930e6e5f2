#ifndef SIPHON_PIPELINE_LOSS_SCALE_H_
#define SIPHON_PIPELINE_LOSS_SCALE_H_

#include <cstdint>

namespace siphon {

// What fp16 gradients are multiplied with so that small ones are not lost (Micikevicius et al.,
// arXiv:1710.03740, section 3.2). It halves after a step whose gradients are not all numbers, and
// such a step changes nothing; it doubles after kStepsToGrow steps in a row that were fine. A power
// of two, so that multiplying and dividing by it loses nothing. Constants as of PyTorch's
// GradScaler.
//
// All workers keep the same one, since all agree on the norm of the gradients.
struct LossScale {
  float scale = 1;
  int64_t fine_steps = 0;     // in a row, at this scale
  int64_t skipped_steps = 0;  // since the first step of training; no update was made in them
  friend bool operator==(const LossScale&, const LossScale&) = default;
};

inline constexpr float kFirstLossScale = 65536;
inline constexpr int64_t kStepsToGrow = 2000;
// Below it the gradients are no numbers whatever the scale: 30 steps in a row from the first one.
inline constexpr float kLeastLossScale = 1.0F / 16384;

enum class StepTaken { kUpdated, kSkipped };
LossScale AfterStep(LossScale scale, StepTaken taken);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_LOSS_SCALE_H_
