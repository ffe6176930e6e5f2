#include "planner/drafts/known_programs.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/planner/drafts/draft_dice.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Returns the programs that were lowered in one hundred drafts.
int LoweredOfAHundred(const std::string& schedule, int workers, uint64_t seed) {
  const PlanningProblem problem =
      ProblemOf(GptLayer(), 3 * workers * FindSchedule(schedule)->chunks,
                LoweredSchedule(schedule, workers, 4), Dgx1V100());
  KnownPrograms known(problem.schedule);
  DraftDice dice(seed);
  DraftPlan draft = KeepingDraft(problem);
  for (int change = 0; change < 100; ++change) {
    const DraftPlan before = draft;
    dice.Change(draft);
    const MemoryPlan memory = PlanOf(problem, draft);
    const auto lowered = known.Lower(memory, LoweringOf(draft));
    const auto scratch = LowerMemoryPlan(problem.schedule, memory, LoweringOf(draft));
    EXPECT_TRUE(scratch.ok()) << scratch.status();
    EXPECT_EQ(lowered.ok(), scratch.ok());
    if (!lowered.ok() || !scratch.ok()) break;
    EXPECT_EQ(lowered->schedule, *scratch) << schedule << " change " << change;
    if (dice.Roll(2) == 0) draft = before;
  }
  return known.lowered();
}

TEST(KnownPrograms, AreThoseOfLowerMemoryPlan) {
  // A draft differs from the one before in at most two workers: what was taken back, and the next
  // change.
  EXPECT_LT(LoweredOfAHundred("1f1b", 4, 1), 204);
  EXPECT_LT(LoweredOfAHundred("gpipe", 2, 2), 200);
  EXPECT_LT(LoweredOfAHundred("interleaved_1f1b", 3, 3), 203);
  EXPECT_LT(LoweredOfAHundred("zb_h1", 3, 4), 203);
}

TEST(KnownPrograms, RefuseWhatLowerMemoryPlanRefuses) {
  const PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  const DraftPlan draft = KeepingDraft(problem);
  MemoryPlan memory = PlanOf(problem, draft);
  memory.stages.pop_back();
  KnownPrograms known(problem.schedule);
  EXPECT_EQ(known.Lower(memory, LoweringOf(draft)).status(),
            LowerMemoryPlan(problem.schedule, memory, LoweringOf(draft)).status());
}

}  // namespace
}  // namespace siphon
