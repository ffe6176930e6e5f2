#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/validate_schedule.h"
#include "tests/pipeline/schedules/built_schedule.h"

namespace siphon {
namespace {

TEST(PipeDream, UpdatesBehindEveryBackward) {
  EXPECT_EQ(ToString(Built("pipedream", {.workers = 2, .microbatches = 3})),
            "0F0 0F1 0B0 0UPDATE0 0F2 0B1 0UPDATE1 0B2 0UPDATE2\n"
            "1F0 1B0 1UPDATE0 1F1 1B1 1UPDATE1 1F2 1B2 1UPDATE2\n");
}

TEST(PipeDream, TakesTheDepthOfEachStage) {
  const Schedule schedule =
      Built("pipedream", {.workers = 3, .microbatches = 4, .options = {.depth = {3, 1, 1}}});
  EXPECT_EQ(ToString(schedule),
            "0F0 0F1 0F2 0B0 0UPDATE0 0F3 0B1 0UPDATE1 0B2 0UPDATE2 0B3 0UPDATE3\n"
            "1F0 1B0 1UPDATE0 1F1 1B1 1UPDATE1 1F2 1B2 1UPDATE2 1F3 1B3 1UPDATE3\n"
            "2F0 2B0 2UPDATE0 2F1 2B1 2UPDATE1 2F2 2B2 2UPDATE2 2F3 2B3 2UPDATE3\n");
  EXPECT_EQ(PeakWeightVersions(schedule), (std::vector<int>{3, 1, 1}));
  EXPECT_EQ(PeakLiveActivations(schedule), (std::vector<int>{3, 1, 1}));
}

// One more than the warm-up (PipeDream's runtime: num_versions).
TEST(PipeDream, HoldsAsManyWeightVersionsAsMinibatchesInFlight) {
  for (const int workers : {1, 2, 4, 8}) {
    const Schedule schedule = Built("pipedream", {.workers = workers, .microbatches = 4 * workers});
    std::vector<int> expected;
    for (int stage = 0; stage < workers; ++stage) expected.push_back(workers - stage);
    EXPECT_EQ(PeakWeightVersions(schedule), expected);
    EXPECT_EQ(PeakLiveActivations(schedule), expected);
  }
}

TEST(PipeDream, RefusesDepthsThatCannotRun) {
  const auto refused = [](std::vector<int> depth) {
    return BuildSchedule("pipedream",
                         {.workers = 3, .microbatches = 8, .options = {.depth = depth}})
        .status();
  };
  EXPECT_EQ(refused({3, 2}), absl::InvalidArgumentError(
                                 "schedule pipedream: depth has 2 numbers for 3 stages; give one "
                                 "for each stage"));
  EXPECT_EQ(refused({3, 2, 0}), absl::InvalidArgumentError(
                                    "schedule pipedream: depth of stage 2 is 0; it is the number "
                                    "of minibatches in flight there, at least 1"));
  EXPECT_EQ(refused({3, 1, 2}),
            absl::InvalidArgumentError(
                "schedule pipedream: depth of stage 2 is 2, but stage 1 before it lets only 1 "
                "minibatches in, so both would wait for ever; depths must not grow"));
}

TEST(PipeDream2BW, UpdatesBehindEachGroupAndBehindTheRest) {
  EXPECT_EQ(ToString(Built("pipedream_2bw", {.workers = 2, .microbatches = 5})),
            "0F0 0F1 0B0 0F2 0B1 0UPDATE1 0F3 0B2 0F4 0B3 0UPDATE3 0B4 0UPDATE4\n"
            "1F0 1B0 1F1 1B1 1UPDATE1 1F2 1B2 1F3 1B3 1UPDATE3 1F4 1B4 1UPDATE4\n");
}

TEST(PipeDream2BW, HoldsTwoWeightVersionsOnEveryStage) {
  for (const int workers : {1, 2, 4, 8}) {
    for (const int group : {0, workers, workers + 3}) {
      SCOPED_TRACE(absl::StrCat(workers, " workers, groups of ", group));
      const Schedule schedule = Built("pipedream_2bw", {.workers = workers,
                                                        .microbatches = 5 * workers + 8,
                                                        .options = {.microbatch_group = group}});
      EXPECT_EQ(schedule.weight_rule, WeightRule::kOneGroupBehind);
      EXPECT_EQ(PeakWeightVersions(schedule), std::vector<int>(workers, 2));
      EXPECT_EQ(PeakWeightVersions(Built("pipedream_2bw", {.workers = workers, .microbatches = 1})),
                std::vector<int>(workers, 1));
    }
  }
}

TEST(PipeDream2BW, RefusesGroupsWithoutRoomForThePipeline) {
  EXPECT_EQ(BuildSchedule("pipedream_2bw",
                          {.workers = 4, .microbatches = 8, .options = {.microbatch_group = 3}})
                .status(),
            absl::InvalidArgumentError(
                "schedule pipedream_2bw: microbatch_group is 3, but two weight versions need at "
                "least as many microbatches between two updates as there are stages, 4"));
}

}  // namespace
}  // namespace siphon
