#include "planner/lowering/program_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A slot before each action, but one for the compound cell.
Schedule OneProgram() {
  return ParsedSchedule("0F0 1F0 0F1 (0F2;1B0)OVERLAP_F_B 0B0 0I1 0W1 0B2 0STEP\n");
}

std::vector<std::string> Texts(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  for (const Action& action : actions) texts.push_back(ToString(action));
  return texts;
}

Action Group(ActionKind kind, int stage, int microbatch, int group) {
  return {.stage = StageId(stage),
          .kind = kind,
          .microbatch = MicrobatchId(microbatch),
          .group = GroupId(group)};
}

TEST(ProgramSlots, StandBeforeCellsAndStepsAndAtTheEnd) {
  const Schedule schedule = OneProgram();
  const ProgramSlots slots(schedule, 0);
  ASSERT_EQ(slots.size(), 10);
  EXPECT_EQ(slots.begin(3), 3);
  EXPECT_EQ(slots.end(3), 5) << "nothing comes between the two of a cell";
  EXPECT_EQ(slots.begin(slots.last()), 10);
  EXPECT_EQ(slots.end(slots.last()), 10);
  EXPECT_EQ(slots.SlotOf(4), 3);
  EXPECT_EQ(slots.SlotOf(9), 8);
  EXPECT_THAT(slots.forwards(), ElementsAre(0, 1, 2, 3));
}

TEST(ProgramSlots, KnowWhatNeedsWhat) {
  const Schedule schedule = OneProgram();
  const ProgramSlots slots(schedule, 0);
  const ProgramSlots::Life second = slots.LifeOf(Group(ActionKind::kSwapOut, 0, 2, 0));
  EXPECT_EQ(second.forward, 3);
  EXPECT_EQ(second.backward, 7);
  EXPECT_THAT(slots.UsesOf(StageId(0), GroupKind::kParameters),
              ElementsAre(0, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(slots.UsesOf(StageId(0), GroupKind::kGradients), ElementsAre(4, 6, 7, 8));
  EXPECT_THAT(slots.UsesOf(StageId(0), GroupKind::kOptimizerState), ElementsAre(8));
  EXPECT_EQ(slots.ComputeUses(3, StageId(1), GroupKind::kGradients), 1);
  EXPECT_EQ(slots.ComputeUses(8, StageId(0), GroupKind::kGradients), 0) << "a STEP";
  EXPECT_EQ(slots.StepSlot(StageId(0)), 8);
  EXPECT_EQ(slots.StepSlot(StageId(1)), ProgramSlots::kNone);
  EXPECT_EQ(slots.GoneAfterStep(8), slots.last());
}

TEST(ProgramSlots, WriteWhatMakesRoomFirstAndThenWhatIsNeededFirst) {
  const Schedule schedule = OneProgram();
  ProgramSlots slots(schedule, 0);
  slots.AddForward(2, Group(ActionKind::kDrop, 0, 1, 0));
  slots.AddComing(2, 7, Group(ActionKind::kSwapIn, 0, 2, 0));
  slots.AddComing(2, 4, Group(ActionKind::kSwapIn, 0, 0, 0));
  slots.AddComing(2, 4, Group(ActionKind::kSwapIn, 0, 0, 1));
  slots.AddLeaving(2, Group(ActionKind::kSwapOutEnd, 1, 0, 0));
  std::vector<Action> lowered;
  slots.Write(1, lowered);
  EXPECT_THAT(lowered, IsEmpty());
  slots.Write(2, lowered);
  EXPECT_THAT(Texts(lowered), ElementsAre("1SWAP_OUT_END0.0", "0SWAP_IN0.1", "0SWAP_IN0.0",
                                          "0SWAP_IN2.0", "0DROP1.0"));
}

}  // namespace
}  // namespace siphon
