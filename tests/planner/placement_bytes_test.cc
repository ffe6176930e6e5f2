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

  plan.training = ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_OUT1.0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
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

TEST(BytesByPlacement, CountsMicrobatchesThatGoAsOftenAsTheyAreLive) {
  PlanText plan;
  plan.training =
      ParsedSchedule("0DROP0.0 0F0 0F1 0DROP2.0 0F2 0B0 0SWAP_OUT3.1 0F3 0B1 0B2 0B3\n");
  plan.stages.resize(1);
  plan.stages[0].cost = {.stash = Bytes(50)};
  plan.memory.stages.resize(1);
  plan.memory.stages[0].groups = {
      {{GroupKind::kActivations, {0, 1}, Bytes(4)}, {Placement::kRecompute}},
      {{GroupKind::kActivations, {1, 2}, Bytes(10)}, {Placement::kNvmeSwap}}};
  // Of three at once, 0 and 2 are dropped, and later one is swapped.
  EXPECT_EQ(CopiesThatGo(plan.training, plan.memory), (std::vector<std::vector<int>>{{2, 1}}));
  EXPECT_EQ(BytesByPlacement(plan)[0],
            (PlacementBytes{Bytes(3 * 50 - 8 - 10), Bytes(8), Bytes(0), Bytes(0), Bytes(10)}));
}

}  // namespace
}  // namespace siphon
