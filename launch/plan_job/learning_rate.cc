#include "launch/plan_job/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace siphon {

double LearningRateAt(const TrainConfig& train, int64_t step) {
  if (step < train.warmup_steps) {
    return train.learning_rate * static_cast<double>(step + 1) / train.warmup_steps;
  }
  if (train.schedule == "constant") return train.learning_rate;
  const int64_t decay_steps = std::max<int64_t>(1, train.steps - 1 - train.warmup_steps);
  const double progress =
      std::clamp(static_cast<double>(step - train.warmup_steps) / decay_steps, 0.0, 1.0);
  const double remaining = train.schedule == "linear"
                               ? 1.0 - progress
                               : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  const double lowest = train.learning_rate * train.final_learning_rate_fraction;
  return lowest + (train.learning_rate - lowest) * remaining;
}

}  // namespace siphon
