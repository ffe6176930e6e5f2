#ifndef SIPHON_TESTS_PIPELINE_SYNTHETIC_SYNTHETIC_TESTING_H_
#define SIPHON_TESTS_PIPELINE_SYNTHETIC_SYNTHETIC_TESTING_H_

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "pipeline/synthetic/work_clock.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "tests/planner/dice.h"

namespace siphon {

// A clock that stands still but for sleeps, which it takes at once.
inline WorkClock StandingClock(std::shared_ptr<Nanos> now) {
  return {.now = [now] { return *now; },
          .sleep_until = [now](Nanos moment) { *now = std::max(*now, moment); }};
}

inline StagePartition EvenPartition(int stages, int layers_per_stage) {
  StagePartition partition;
  for (int stage = 0; stage < stages; ++stage) {
    partition.stages.push_back({stage * layers_per_stage, (stage + 1) * layers_per_stage});
  }
  return partition;
}

// Layers whose figures all differ, with everything that a profile can say: tensors that two layers
// save, gradients queued for W that are larger or smaller than what was saved.
inline ModelProfile DicedProfile(int layers, Bytes boundary, int seed) {
  Dice dice(seed);
  const auto bytes = [&](int low, int high) { return Bytes(dice.Roll(low, high)); };
  ModelProfile profile{.model = "diced", .source = "dice"};
  for (int layer = 0; layer < layers; ++layer) {
    LayerProfile one{
        .name = absl::StrCat("layer", layer),
        .forward = Nanos(dice.Roll(100, 1000)),
        .input_backward = Nanos(dice.Roll(100, 1000)),
        .weight_backward = Nanos(dice.Roll(100, 1000)),
        .optimizer = Nanos(dice.Roll(10, 100)),
        .parameters = bytes(1, 300),
        .gradients = bytes(1, 300),
        .optimizer_state = bytes(1, 600),
        .boundary = boundary,
        .forward_workspace = bytes(0, 200),
        .backward_workspace = bytes(0, 200),
        .saved = {{"first", bytes(50, 400), 300'000}, {"second", bytes(50, 400), 1'000'000}},
        .kept_for_weights = bytes(0, 900)};
    if (dice.Roll(0, 1) == 1) one.saved_input = one.saved[0].bytes;
    if (dice.Roll(0, 1) == 1) one.saved_output = one.saved[1].bytes;
    if (dice.Roll(0, 1) == 1) one.whole_backward = Nanos(dice.Roll(200, 2000));
    profile.layers.push_back(one);
  }
  return profile;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_SYNTHETIC_SYNTHETIC_TESTING_H_
