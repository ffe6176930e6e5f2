#include "planner/drafts/known_steps.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/check_residency.h"
#include "planner/drafts/draft_plan.h"
#include "tests/planner/drafts/draft_dice.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// What KnownSteps leaves out.
SimulatedStep WithoutPictures(SimulatedStep step) {
  step.lanes.clear();
  step.memory.clear();
  step.other_memory.clear();
  return step;
}

struct SequenceShape {
  std::string schedule;
  int workers = 2;
  int microbatches = 4;
  uint64_t seed = 1;
};

class KnownStepsSequence : public testing::TestWithParam<SequenceShape> {};

// Drafts as a search makes them: small changes, many of which are taken back.
TEST_P(KnownStepsSequence, AnswersWhatASimulationFromScratchWould) {
  const SequenceShape& shape = GetParam();
  LayerProfile layer = GptLayer();
  PlanningProblem problem =
      ProblemOf(layer, 3 * shape.workers * FindSchedule(shape.schedule)->chunks,
                LoweredSchedule(shape.schedule, shape.workers, shape.microbatches), Dgx1V100());
  KnownPrograms programs(problem.schedule);
  KnownSteps known(problem);
  DraftDice dice(shape.seed);
  DraftPlan draft = KeepingDraft(problem);
  for (int worker = 0; worker < shape.workers; ++worker) {
    draft.lenders[worker] = {{draft.mapping.device_of_worker[(worker + 1) % shape.workers], 2},
                             {DeviceId(3), 1}};
    if (draft.lenders[worker][0].lender == DeviceId(3)) draft.lenders[worker].pop_back();
  }
  constexpr int kChanges = 60;
  for (int change = 0; change < kChanges; ++change) {
    const DraftPlan before = draft;
    dice.Change(draft);
    const MemoryPlan memory = PlanOf(problem, draft);
    const auto lowered = programs.Lower(memory, LoweringOf(draft));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_TRUE(CheckResidency(lowered->schedule, memory).ok()) << "what is not checked again";
    SimulationInput input = SimulationOf(problem, draft.mapping, memory, lowered->schedule);
    input.capacity.clear();
    const auto scratch = Simulate(input);
    const auto lending = dice.Roll(2) == 0 ? LendingDetail::kNone : LendingDetail::kLent;
    const auto times = known.Run(draft.mapping, memory, *lowered, lending);
    ASSERT_EQ(times.ok(), scratch.ok());
    if (!scratch.ok()) {
      EXPECT_EQ(times.status(), scratch.status());
      continue;
    }
    ASSERT_EQ(times->step, WithoutPictures(*scratch)) << "change " << change;
    if (lending == LendingDetail::kLent) {
      EXPECT_EQ(times->lent, SimulateTimes(input, LendingDetail::kLent)->lent);
    }
    if (dice.Roll(2) == 0) draft = before;
  }
  EXPECT_LT(known.simulations(), kChanges) << "steps that came again were known";
  EXPECT_GT(known.runs().events_taken(), known.runs().events() / 20) << "steps begin alike";
  EXPECT_LT(known.runs().events_taken(), known.runs().events());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, KnownStepsSequence,
    testing::Values(SequenceShape{"gpipe", 2, 4, 1}, SequenceShape{"1f1b", 3, 5, 2},
                    SequenceShape{"1f1b", 4, 6, 3}, SequenceShape{"interleaved_1f1b", 2, 4, 4},
                    SequenceShape{"zb_h1", 3, 4, 5}),
    [](const auto& info) { return absl::StrCat(info.param.schedule, "_", info.param.seed); });

TEST(KnownSteps, SimulatesEachStepOnce) {
  const PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  KnownPrograms programs(problem.schedule);
  KnownSteps known(problem);
  DraftPlan draft = KeepingDraft(problem);
  const auto run = [&](LendingDetail lending) {
    const MemoryPlan memory = PlanOf(problem, draft);
    const auto lowered = programs.Lower(memory, LoweringOf(draft));
    return known.Run(draft.mapping, memory, *lowered, lending);
  };
  const auto kept = run(LendingDetail::kNone);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->lent.own.empty());
  draft.stages[0].timing.forwards_to_leave = 2;  // of nothing
  EXPECT_EQ(*run(LendingDetail::kNone), *kept);
  EXPECT_EQ(known.simulations(), 1);
  const auto lent = run(LendingDetail::kLent);
  EXPECT_EQ(lent->step, kept->step);
  EXPECT_EQ(lent->lent.own.size(), 2u);
  EXPECT_EQ(known.simulations(), 2) << "who holds what was not looked at before";
  EXPECT_EQ(*run(LendingDetail::kNone), *lent) << "more than what is asked for";
  EXPECT_EQ(known.simulations(), 2);
  draft.mapping.device_of_worker = {DeviceId(1), DeviceId(0)};
  EXPECT_TRUE(run(LendingDetail::kNone).ok());
  EXPECT_EQ(known.simulations(), 3) << "another map is another step";
}

}  // namespace
}  // namespace siphon
