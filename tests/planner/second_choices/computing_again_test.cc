#include "planner/second_choices/computing_again.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// One worker with two layers of 10 bytes of activations. The first one's go to the host, so that in
// F1 it holds 10 of microbatch 0 and 20 of microbatch 1, its most.
struct OneWorker {
  OneWorker() {
    problem = ProblemOf({.forward = Nanos(1000),
                         .input_backward = Nanos(1000),
                         .weight_backward = Nanos(1000),
                         .saved = {{"all", Bytes(10)}}},
                        2, ParsedSchedule("0F0 0F1 0B1 0B0 0STEP\n"), TwoLinkedDevices());
    problem.granule = Bytes(1);
    plan.memory.stages.resize(1);
    plan.memory.stages[0].groups = {
        {{.layers = {0, 1}, .bytes = Bytes(10)},
         {.placement = Placement::kHostSwap, .second_choice = Placement::kRecompute}}};
    plan.schedule = ParsedSchedule(
        "0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_OUT1.0 0F1 0SWAP_OUT_END1.0 0SWAP_IN1.0 0B1 "
        "0SWAP_IN0.0 0B0 0STEP\n");
    held.resize(1);
  }
  absl::StatusOr<std::vector<Bytes>> Peaks() const {
    return PeaksComputingAgain(problem, IdentityMapping(1), plan, {Bytes(100)}, held);
  }
  PlanningProblem problem;
  FollowedPlan plan;
  std::vector<MemoryByKind> held;
};

TEST(PeaksComputingAgain, AddWhatItTakesBeyondThePlan) {
  OneWorker one;
  // Dropped at once, and there again in B1 when that is through the second layer: 20 at most.
  EXPECT_THAT(one.Peaks().value(), ElementsAre(Bytes(100)));
  // 37 with what computing again takes, 7 more than by the plan.
  one.held[0][MemoryKind::kWorkspace] = Bytes(17);
  EXPECT_THAT(one.Peaks().value(), ElementsAre(Bytes(107)));
}

TEST(PeaksComputingAgain, AreThePlansWhereNothingIsComputedAgain) {
  OneWorker one;
  one.held[0][MemoryKind::kWorkspace] = Bytes(17);
  GroupChoice& choice = one.plan.memory.stages[0].groups[0].choice;
  for (const Placement second : {Placement::kKeep, Placement::kNvmeSwap, Placement::kPeerSwap}) {
    choice.second_choice = second;
    EXPECT_THAT(one.Peaks().value(), ElementsAre(Bytes(100)));
  }
}

}  // namespace
}  // namespace siphon
