// Idle time of every schedule when all stages are equal and messages are free, against what its
// paper says.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/lower_schedule.h"
#include "planner/step_grid.h"
#include "tests/pipeline/schedules/built_schedule.h"

namespace siphon {
namespace {

StepGrid Drawn(absl::string_view name, const ScheduleShape& shape) {
  absl::StatusOr<StepGrid> grid = DrawStepGrid(Built(name, shape));
  EXPECT_TRUE(grid.ok()) << grid.status();
  return grid.ok() ? *grid : StepGrid{};
}

// A published bubble is the time of fill and drain over the time of the step, both for one worker.
void ExpectBubble(absl::string_view name, const ScheduleShape& shape, int idle, int busy) {
  SCOPED_TRACE(
      absl::StrCat(name, " P=", shape.workers, " V=", shape.chunks, " m=", shape.microbatches));
  const StepGrid grid = Drawn(name, shape);
  EXPECT_EQ(grid.steps, idle + busy);
  EXPECT_DOUBLE_EQ(BubbleFraction(grid), static_cast<double>(idle) / (idle + busy));
}

// (P - 1) / (m + P - 1), in units of F + B.
TEST(Bubble, OfGpipeAnd1F1BIsOneMicrobatchForEachWorkerBehindTheFirst) {
  for (const int workers : {1, 2, 4, 8}) {
    for (const int microbatches : {1, 4, 8, 32}) {
      for (const char* name : {"gpipe", "1f1b"}) {
        ExpectBubble(name, {.workers = workers, .microbatches = microbatches}, 3 * (workers - 1),
                     3 * microbatches);
      }
    }
  }
}

// (P - 1) / (V m + P - 1) for whole rounds (arXiv:2104.04473, section 2.2).
TEST(Bubble, OfInterleaved1F1BIsVTimesSmaller) {
  for (const int workers : {2, 4, 8}) {
    for (const int chunks : {1, 2, 4}) {
      for (const int rounds : {1, 2, 4}) {
        const int microbatches = workers * rounds;
        ExpectBubble("interleaved_1f1b",
                     {.workers = workers, .chunks = chunks, .microbatches = microbatches},
                     3 * (workers - 1), 3 * chunks * microbatches);
      }
    }
  }
}

// 11.1 % for P = 4, m = 8 and 6.8 % for P = 8, m = 32 (arXiv:2401.10241 with F = I = W): (P - 1) F.
TEST(Bubble, OfZbH1AndZbH2IsAThirdOf1F1B) {
  for (const int workers : {2, 4, 8}) {
    for (const int microbatches : {8, 16, 32}) {
      if (microbatches < 2 * workers - 1) continue;
      for (const char* name : {"zb_h1", "zb_h2"}) {
        ExpectBubble(name, {.workers = workers, .microbatches = microbatches}, workers - 1,
                     3 * microbatches);
      }
    }
  }
}

// 5.9 % for P = 4, m = 8 and 3.5 % for P = 8, m = 32.
TEST(Bubble, OfTheVSchedulesAndInterleavedZeroBubbleIsASixthOf1F1B) {
  for (const char* name : {"zbv", "dualpipev", "interleaved_zero_bubble"}) {
    ExpectBubble(name, {.workers = 4, .chunks = 2, .microbatches = 8}, 3, 48);
    ExpectBubble(name, {.workers = 8, .chunks = 2, .microbatches = 32}, 7, 192);
  }
}

TEST(InnerIdle, IsNoneForZbH2AndZbv) {
  for (const int workers : {2, 4, 8}) {
    const std::vector<int> none(workers, 0);
    EXPECT_EQ(InnerIdle(Drawn("zb_h2", {.workers = workers, .microbatches = 32})), none);
    EXPECT_EQ(InnerIdle(Drawn("zbv", {.workers = workers, .chunks = 2, .microbatches = 32})), none);
  }
  EXPECT_EQ(InnerIdle(Drawn("zb_h2", {.workers = 4, .microbatches = 8})), std::vector<int>(4, 0));
  EXPECT_EQ(InnerIdle(Drawn("zbv", {.workers = 4, .chunks = 2, .microbatches = 8})),
            std::vector<int>(4, 0));
}

TEST(InnerIdle, OfZbH1IsOneStepForEachWorkerBehind) {
  EXPECT_EQ(InnerIdle(Drawn("zb_h1", {.workers = 4, .microbatches = 8})),
            (std::vector<int>{3, 2, 1, 0}));
  EXPECT_EQ(InnerIdle(Drawn("zb_h1", {.workers = 8, .microbatches = 32})),
            (std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0}));
}

// torch.distributed.pipelining's own test of its lowering: two ranks with two stages each.
TEST(CountSteps, OfTheLoweredInterleavedZeroBubbleIs113) {
  const Schedule compute =
      Built("interleaved_zero_bubble", {.workers = 2, .chunks = 2, .microbatches = 8});
  const absl::StatusOr<Schedule> lowered = InsertCommunication(MergeBackward(compute));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CountSteps(*lowered).value(), 113);
}

}  // namespace
}  // namespace siphon
