#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/step_grid.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

Schedule Built(absl::string_view name, int workers, int microbatches) {
  absl::StatusOr<Schedule> schedule =
      BuildSchedule(name, {.workers = workers, .chunks = 2, .microbatches = microbatches});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : Schedule{};
}

int LargestPeak(const Schedule& schedule) {
  const std::vector<int> peaks = PeakLiveActivations(schedule);
  return *std::max_element(peaks.begin(), peaks.end());
}

// Steps of the busiest schedule that are not work: six a microbatch are.
int IdleSteps(const Schedule& schedule) {
  const absl::StatusOr<StepGrid> grid = DrawStepGrid(schedule);
  EXPECT_TRUE(grid.ok()) << grid.status();
  return grid.ok() ? grid->steps - 6 * schedule.microbatches : 0;
}

TEST(ZBV, TwoWorkersThreeMicrobatchesByHand) {
  EXPECT_EQ(ToString(Built("zbv", 2, 3)),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2\n"
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2\n");
}

TEST(VMin, TwoWorkersTwoMicrobatchesByHand) {
  EXPECT_EQ(ToString(Built("v_min", 2, 2)),
            "0F0 3F0 3I0 3W0 0F1 0I0 0W0 3F1 3I1 3W1 0I1 0W1\n"
            "1F0 2F0 2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 2W1 1W1\n");
}

// Microbatches of 1 / P of the model, as the authors publish them: (P + 4) / 3 and (P + 2) / 2,
// rounded down; here in stages, two of which make one.
TEST(VSchedules, KeepNoMoreThanPublished) {
  for (int workers = 1; workers <= 32; ++workers) {
    SCOPED_TRACE(absl::StrCat(workers, " workers"));
    EXPECT_EQ(LargestPeak(Built("v_min", workers, 3 * workers + 1)), 2 * ((workers + 4) / 3));
    EXPECT_EQ(LargestPeak(Built("v_half", workers, 3 * workers + 1)), 2 * ((workers + 2) / 2));
    EXPECT_EQ(LargestPeak(Built("zbv", workers, 3 * workers + 1)), 2 * workers);
  }
}

// Published: bubbles of about 2 / 3 and 1 / 2 of 1f1b's, whose 3 (P - 1) are 6 (P - 1) steps here.
TEST(VSchedules, IdleNoLongerThanPublished) {
  for (int workers = 2; workers <= 32; ++workers) {
    SCOPED_TRACE(absl::StrCat(workers, " workers"));
    EXPECT_EQ(IdleSteps(Built("v_min", workers, 3 * workers)), 4 * workers - 5);
    EXPECT_EQ(IdleSteps(Built("v_half", workers, 3 * workers)),
              workers == 2 ? 3 : 3 * workers - (workers % 2 == 0 ? 5 : 4));
  }
  EXPECT_EQ(IdleSteps(Built("v_min", 1, 3)), 0);
  EXPECT_EQ(IdleSteps(Built("v_half", 1, 3)), 0);
}

TEST(VSchedules, AreValidForAnyNumberOfMicrobatches) {
  for (const char* name : {"zbv", "v_half", "v_min"}) {
    for (int workers = 1; workers <= 9; ++workers) {
      for (int microbatches = 1; microbatches <= 20; ++microbatches) {
        EXPECT_EQ(ValidateSchedule(Built(name, workers, microbatches), SchedulePurpose::kTraining),
                  absl::OkStatus())
            << name << " " << workers << " " << microbatches;
      }
    }
  }
}

TEST(VSchedules, AddGradientsUpInAscendingOrder) {
  for (const char* name : {"zbv", "v_half", "v_min", "dualpipev"}) {
    const Schedule schedule = Built(name, 4, 11);
    for (int stage = 0; stage < 8; ++stage) {
      const std::vector<MicrobatchId> order = AccumulationOrder(schedule, StageId(stage));
      EXPECT_EQ(order.size(), 11u);
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << name << " stage " << stage;
    }
  }
}

TEST(VSchedules, TakeTwoChunksAndEnoughMicrobatches) {
  EXPECT_EQ(BuildSchedule("zbv", {.workers = 2, .chunks = 3, .microbatches = 8}).status(),
            absl::InvalidArgumentError(
                "schedule zbv runs down the workers and up again: it takes 2 chunks, not 3"));
  EXPECT_EQ(BuildSchedule("dualpipev", {.workers = 4, .chunks = 2, .microbatches = 7}).status(),
            absl::InvalidArgumentError("schedule dualpipev fills its pipeline first: 8 stages take "
                                       "at least 8 microbatches, not 7"));
}

}  // namespace
}  // namespace siphon
