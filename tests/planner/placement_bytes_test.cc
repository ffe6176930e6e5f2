#include "planner/placement_bytes.h"

#include <gtest/gtest.h>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

TEST(PeakLiveMicrobatches, CountsFromForwardToTheLastBackward) {
  // One worker with two stages; stage 1 splits its backward.
  EXPECT_EQ(PeakLiveMicrobatches(ParsedSchedule("0F0 1F0 0F1 1I0 1F1 0B0 1W0 1I1 1W1 0B1\n")),
            (std::vector<int>{2, 2}));
  EXPECT_EQ(PeakLiveMicrobatches(ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n")),
            (std::vector<int>{2, 1}));
}

TEST(BytesByPlacement, CountsActivationsForEachLiveMicrobatch) {
  PlanText plan;
  plan.training = ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  plan.stages.resize(2);
  plan.stages[0].cost = {.parameters = Bytes(10), .optimizer_state = Bytes(20), .stash = Bytes(7)};
  plan.stages[1].cost = {.gradients = Bytes(5), .stash = Bytes(3)};
  EXPECT_EQ(Sum(BytesByPlacement(plan)), (PlacementBytes{Bytes(10 + 20 + 2 * 7 + 5 + 3)}));

  plan.memory.stages.resize(2);
  plan.memory.stages[0].groups = {
      {{GroupKind::kActivations, {0, 1}, Bytes(4)}, {Placement::kPeerSwap}},
      {{GroupKind::kActivations, {1, 2}, Bytes(1)}, {Placement::kKeep}},
      {{GroupKind::kOptimizerState, {0, 1}, Bytes(15)}, {Placement::kHostSwap}}};
  // keep, recompute, d2d_swap, host_swap, nvme_swap
  EXPECT_EQ(BytesByPlacement(plan)[0],
            (PlacementBytes{Bytes(10 + 5 + 2 * 3), Bytes(0), Bytes(2 * 4), Bytes(15), Bytes(0)}));
  EXPECT_EQ(BytesByPlacement(plan)[1], (PlacementBytes{Bytes(5 + 3)}));

  plan.memory.stages[0].update = UpdatePlace::kHost;  // which then has all of its state
  EXPECT_EQ(BytesByPlacement(plan)[0],
            (PlacementBytes{Bytes(10 + 2 * 3), Bytes(0), Bytes(2 * 4), Bytes(20), Bytes(0)}));
}

}  // namespace
}  // namespace siphon
