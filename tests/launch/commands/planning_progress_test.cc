#include "launch/commands/planning_progress.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(PlanningProgress, SaysWhatItIsAtAndForHowLong) {
  EXPECT_EQ(ProgressLine("planning", "", Nanos(0), 0), "planning ...");
  EXPECT_EQ(ProgressLine("planning", "", Nanos(0), 3), "planning ... 3 s");
  EXPECT_EQ(ProgressLine("planning", "trying one place for all", Nanos(0), 0),
            "planning: trying one place for all ...");
  EXPECT_EQ(ProgressLine("planning with memory.capacity=24GB", "searching further",
                         Nanos(46'900'000'000), 12),
            "planning with memory.capacity=24GB: searching further, 46.9 s a step so far ... 12 s");
}

// Under a test standard error is no terminal, or a terminal that a line is wiped from.
TEST(PlanningProgress, EndsWithItsThread) {
  PlanningProgress progress;
  progress.Say("planning");
  progress.News()("searching further", Nanos(5));
}

}  // namespace
}  // namespace siphon
