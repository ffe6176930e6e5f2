#include "planner/marked_grid.h"

#include <gtest/gtest.h>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

TEST(MarkedGrid, PointsAtTheActionInItsProgram) {
  const Schedule schedule = ParseSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n").value();
  EXPECT_EQ(MarkedGrid(schedule, {1, 1}),
            "worker 0: 0F0 0F1 0B0 0B1\nworker 1: 1F0 1B0 <-- here 1F1 1B1");
}

TEST(SentenceOf, LeavesTheGridOut) {
  const Schedule schedule = ParseSchedule("0F0 0B0\n").value();
  EXPECT_EQ(SentenceOf(ScheduleError(schedule, {0, 1}, "worker 0 has 0B0 too early")),
            "worker 0 has 0B0 too early");
  EXPECT_EQ(SentenceOf(absl::InternalError("one line")), "one line");
  EXPECT_EQ(SentenceOf(absl::OkStatus()), "");
}

}  // namespace
}  // namespace siphon
