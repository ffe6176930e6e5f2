#include "planner/weight_stashes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

// A line each: "stage.update: from ..., stashed by ..., for first use to last use".
std::string Text(const Schedule& schedule, int worker = 0) {
  const std::vector<Action>& program = schedule.programs[worker];
  const auto at = [&](int place) { return place < 0 ? "the begin" : ToString(program[place]); };
  std::string text;
  for (const WeightStash& stash : FindWeightStashes(schedule, WorkerId(worker)).stashes) {
    absl::StrAppend(&text, stash.stage.value, ".", stash.update.value, ": from ", at(stash.born),
                    ", stashed by ", at(stash.begin), ", for ", at(stash.first_use), " to ",
                    at(stash.last_use), "\n");
  }
  return text;
}

TEST(FindWeightStashes, FindsNoneWithoutUpdates) {
  const WeightStashes none = FindWeightStashes(ParsedSchedule("0F0 0F1 0B0 0B1"), WorkerId(0));
  EXPECT_TRUE(none.stashes.empty());
  EXPECT_EQ(none.At(2), WeightStashes::kNone);
}

TEST(FindWeightStashes, KeepsWhatMicrobatchesHaveGoneForwardWith) {
  EXPECT_EQ(
      Text(ParsedSchedule("0F0 0F1 0F2 0B0 0UPDATE0 0F3 0B1 0UPDATE1 0B2 0UPDATE2 0B3 0UPDATE3")),
      "0.0: from the begin, stashed by 0UPDATE0, for 0B1 to 0B2\n"
      "0.1: from 0UPDATE0, stashed by 0UPDATE1, for 0B3 to 0B3\n");
  // Nothing is left of version 0 behind UPDATE0.
  EXPECT_EQ(Text(ParsedSchedule("0F0 0B0 0UPDATE0 0F1 0B1 0UPDATE1")), "");
}

TEST(FindWeightStashes, TellsStagesOfOneWorkerApart) {
  EXPECT_EQ(
      Text(ParsedSchedule("0F0 1F0 1B0 1UPDATE0 0F1 1F1 0B0 0UPDATE0 1B1 1UPDATE1 0B1 0UPDATE1")),
      "0.0: from the begin, stashed by 0UPDATE0, for 0B1 to 0B1\n");
}

TEST(FindWeightStashes, CountsSplitBackwardsAndRecomputations) {
  EXPECT_EQ(Text(ParsedSchedule("0F0 0F1 0I0 0W0 0UPDATE0 0I1 0W1 0UPDATE1")),
            "0.0: from the begin, stashed by 0UPDATE0, for 0I1 to 0W1\n");
  EXPECT_EQ(Text(ParsedSchedule("0F0 0DROP1.0 0F1 0B0 0UPDATE0 0RECOMPUTE1.0 0B1 0UPDATE1")),
            "0.0: from the begin, stashed by 0UPDATE0, for 0RECOMPUTE1.0 to 0B1\n");
}

TEST(FindWeightStashes, LetsLaterForwardsGoByOlderWeightsOneGroupBehind) {
  Schedule schedule =
      ParsedSchedule("0F0 0B0 0UPDATE0 0F1 0B1 0UPDATE1 0F2 0B2 0UPDATE2 0F3 0B3 0UPDATE3");
  EXPECT_EQ(Text(schedule), "");
  schedule.weight_rule = WeightRule::kOneGroupBehind;
  // Groups of one microbatch: 0 and 1 go by the initial weights, 2 by those of UPDATE0.
  EXPECT_EQ(Text(schedule),
            "0.0: from the begin, stashed by 0UPDATE0, for 0F1 to 0B1\n"
            "0.1: from 0UPDATE0, stashed by 0UPDATE1, for 0F2 to 0B2\n"
            "0.2: from 0UPDATE1, stashed by 0UPDATE2, for 0F3 to 0B3\n");
}

TEST(FindWeightStashes, SaysWhichActionGoesByWhichStash) {
  const Schedule schedule = ParsedSchedule("0F0 0F1 0B0 0UPDATE0 0F2 0B1 0UPDATE1 0B2 0UPDATE2");
  const WeightStashes stashes = FindWeightStashes(schedule, WorkerId(0));
  EXPECT_EQ(stashes.of_place, (std::vector<int>{-1, -1, -1, 0, -1, 0, 1, 1, -1}));
  EXPECT_EQ(stashes.Find(StageId(0), MicrobatchId(1)), 1);
  EXPECT_EQ(stashes.Find(StageId(0), MicrobatchId(2)), WeightStashes::kNone);
}

}  // namespace
}  // namespace siphon
