#include "launch/run/record/run_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace siphon {
namespace {

using testing::ElementsAre;

constexpr char kLoss[] =
    "the loss of step 7 is inf: nothing is learned from there on; train.learning_rate may be too "
    "high";

TEST(RunWarnings, ShowThoseSoFarAndEachThatComes) {
  std::vector<std::string> end = {"resumed"}, shown;
  RunWarnings warnings(&end);
  warnings.Add("before");
  warnings.ShowBy([&shown](const std::string& warning) { shown.push_back(warning); });
  warnings.NoteLoss(6, 2.5);
  warnings.NoteLoss(7, HUGE_VAL);
  warnings.NoteLoss(8, std::nan(""));  // was to be expected
  EXPECT_THAT(shown, ElementsAre("resumed", "before", kLoss));
  EXPECT_EQ(end, shown);
}

// One line for all of them, whatever else was said in between.
TEST(RunWarnings, SayAtTheEndHowManySavesFailed) {
  std::vector<std::string> end, shown;
  RunWarnings warnings(&end);
  warnings.ShowBy([&shown](const std::string& warning) { shown.push_back(warning); });
  const absl::Status full = absl::InternalError("the disk is full");
  warnings.NoteFailedSave(4, full);
  EXPECT_THAT(end, ElementsAre("no checkpoint after step 4: the disk is full"));
  warnings.NoteLoss(7, HUGE_VAL);
  warnings.NoteFailedSave(8, full);
  warnings.NoteFailedSave(12, full);
  EXPECT_THAT(end, ElementsAre("3 checkpoints could not be written, the last: no checkpoint after "
                               "step 12: the disk is full",
                               kLoss));
  EXPECT_THAT(shown, ElementsAre("no checkpoint after step 4: the disk is full", kLoss,
                                 "no checkpoint after step 8: the disk is full",
                                 "no checkpoint after step 12: the disk is full"));
}

}  // namespace
}  // namespace siphon
