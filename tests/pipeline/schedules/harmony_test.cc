#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/validate_schedule.h"
#include "tests/pipeline/schedules/built_schedule.h"

namespace siphon {
namespace {

absl::Status Refused(absl::string_view name, const ScheduleShape& shape) {
  return BuildSchedule(name, shape).status();
}

// Harmony, figure 4: four layers on two GPUs, groups of two microbatches.
TEST(HarmonyPP, IsThePapersFigure) {
  EXPECT_EQ(ToString(Built("harmony_pp", {.workers = 2, .chunks = 2, .microbatches = 2})),
            "0F0 0F1 2F0 2F1 2B0 2B1 2STEP 0B0 0B1 0STEP\n"
            "1F0 1F1 3F0 3F1 3B0 3B1 3STEP 1B0 1B1 1STEP\n");
}

TEST(HarmonyPP, RunsTheStagesOfAPackAsOne) {
  EXPECT_EQ(ToString(Built("harmony_pp", {.workers = 2,
                                          .chunks = 2,
                                          .microbatches = 2,
                                          .options = {.forward_pack = 2, .backward_pack = 1}})),
            "0F0 1F0 0F1 1F1 1B0 1B1 1STEP 0B0 0B1 0STEP\n"
            "2F0 3F0 2F1 3F1 3B0 3B1 3STEP 2B0 2B1 2STEP\n");
  EXPECT_EQ(ToString(Built("harmony_pp", {.workers = 2,
                                          .chunks = 2,
                                          .microbatches = 2,
                                          .options = {.forward_pack = 1, .backward_pack = 2}})),
            "0F0 0F1 1F0 1F1 1B0 0B0 1B1 0B1 1STEP 0STEP\n"
            "2F0 2F1 3F0 3F1 3B0 2B0 3B1 2B1 3STEP 2STEP\n");
}

// Neither divides the other: blocks of six stages, three packs forward and two backward, go around.
TEST(HarmonyPP, PacksForwardAndBackwardApart) {
  EXPECT_EQ(ToString(Built("harmony_pp", {.workers = 2,
                                          .chunks = 6,
                                          .microbatches = 1,
                                          .options = {.forward_pack = 2, .backward_pack = 3}})),
            "0F0 1F0 2F0 3F0 4F0 5F0 5B0 4B0 3B0 5STEP 4STEP 3STEP 2B0 1B0 0B0 2STEP 1STEP 0STEP\n"
            "6F0 7F0 8F0 9F0 10F0 11F0 11B0 10B0 9B0 11STEP 10STEP 9STEP 8B0 7B0 6B0 8STEP 7STEP "
            "6STEP\n");
  EXPECT_EQ(ToString(Built("harmony_pp", {.workers = 1,
                                          .chunks = 6,
                                          .microbatches = 2,
                                          .options = {.forward_pack = 3, .backward_pack = 2}})),
            "0F0 1F0 2F0 0F1 1F1 2F1 3F0 4F0 5F0 3F1 4F1 5F1 "
            "5B0 4B0 5B1 4B1 5STEP 4STEP 3B0 2B0 3B1 2B1 3STEP 2STEP 1B0 0B0 1B1 0B1 1STEP "
            "0STEP\n");
}

TEST(HarmonyPP, UpdatesBehindTheLastGroup) {
  EXPECT_EQ(
      ToString(Built(
          "harmony_pp",
          {.workers = 1, .chunks = 2, .microbatches = 3, .options = {.microbatch_group = 2}})),
      "0F0 0F1 1F0 1F1 0F2 1F2 1B0 1B1 0B0 0B1 1B2 1STEP 0B2 0STEP\n");
}

// Forward all three microbatches go through stage 0 before stage 1 begins, backward one by one; and
// the other way around.
TEST(HarmonyPP, GroupsMicrobatchesForwardAndBackwardApart) {
  EXPECT_EQ(ToString(Built(
                "harmony_pp",
                {.workers = 1, .chunks = 2, .microbatches = 3, .options = {.backward_group = 1}})),
            "0F0 0F1 0F2 1F0 1F1 1F2 1B0 0B0 1B1 0B1 1B2 1STEP 0B2 0STEP\n");
  EXPECT_EQ(
      ToString(Built("harmony_pp", {.workers = 1,
                                    .chunks = 2,
                                    .microbatches = 3,
                                    .options = {.microbatch_group = 1, .backward_group = 2}})),
      "0F0 1F0 0F1 1F1 0F2 1F2 1B0 1B1 0B0 0B1 1B2 1STEP 0B2 0STEP\n");
  EXPECT_EQ(
      ToString(Built("harmony_pp", {.workers = 2,
                                    .chunks = 2,
                                    .microbatches = 4,
                                    .options = {.microbatch_group = 4, .backward_group = 2}})),
      "0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 "
      "2B0 2B1 0B0 0B1 2B2 2B3 2STEP 0B2 0B3 0STEP\n"
      "1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 "
      "3B0 3B1 1B0 1B1 3B2 3B3 3STEP 1B2 1B3 1STEP\n");
}

// With packs of their own as well, on all workers: two stages forward, one backward.
TEST(HarmonyPP, GroupsAndPacksAreApart) {
  EXPECT_EQ(ToString(Built("harmony_pp", {.workers = 1,
                                          .chunks = 4,
                                          .microbatches = 2,
                                          .options = {.forward_pack = 2,
                                                      .backward_pack = 1,
                                                      .microbatch_group = 1,
                                                      .backward_group = 2}})),
            "0F0 1F0 2F0 3F0 0F1 1F1 2F1 3F1 "
            "3B0 3B1 3STEP 2B0 2B1 2STEP 1B0 1B1 1STEP 0B0 0B1 0STEP\n");
}

TEST(HarmonyPP, GroupsBackwardAsForwardUnlessTold) {
  for (const int group : {0, 1, 2, 3, 5}) {
    ScheduleShape shape{
        .workers = 2, .chunks = 3, .microbatches = 5, .options = {.microbatch_group = group}};
    const Schedule alike = Built("harmony_pp", shape);
    shape.options.backward_group = group == 0 ? 5 : group;
    EXPECT_EQ(Built("harmony_pp", shape), alike) << group;
  }
}

TEST(HarmonyPP, RefusesGroupsOfMoreMicrobatchesThanThereAre) {
  for (const int group : {3, -1}) {
    for (const char* name : {"harmony_pp", "harmony_dp"}) {
      EXPECT_EQ(
          Refused(
              name,
              {.workers = 2, .chunks = 2, .microbatches = 2, .options = {.backward_group = group}}),
          absl::InvalidArgumentError(absl::StrCat("schedule ", name, ": backward_group is ", group,
                                                  "; there are 2 microbatches, so give 1 to 2")));
    }
  }
}

TEST(HarmonyPP, RefusesPacksThatTakeAStageFromItsWeights) {
  EXPECT_EQ(Refused("harmony_pp", {.workers = 2,
                                   .chunks = 6,
                                   .microbatches = 2,
                                   .options = {.forward_pack = 2, .backward_pack = 4}}),
            absl::InvalidArgumentError(
                "schedule harmony_pp: packs of 2 stages forward and 4 backward; both must divide "
                "the 6 chunks of a worker, so that a stage stays where its weights are"));
  EXPECT_EQ(Refused("harmony_pp",
                    {.workers = 2, .chunks = 2, .microbatches = 2, .options = {.forward_pack = 5}}),
            absl::InvalidArgumentError(
                "schedule harmony_pp: forward_pack is 5; there are 4 stages, so give 1 to 4"));
  EXPECT_EQ(
      Refused("harmony_pp",
              {.workers = 2, .chunks = 2, .microbatches = 2, .options = {.microbatch_group = 3}}),
      absl::InvalidArgumentError(
          "schedule harmony_pp: microbatch_group is 3; there are 2 microbatches, so give 1 "
          "to 2"));
}

TEST(HarmonyDP, IsTheWholeModelOnEveryWorker) {
  const Schedule schedule =
      Built("harmony_dp", {.workers = 2,
                           .chunks = 2,
                           .microbatches = 2,
                           .options = {.forward_pack = 3, .backward_pack = 2}});
  EXPECT_EQ(schedule.replicas, 2);
  EXPECT_EQ(ToString(schedule),
            "0F0 1F0 2F0 0F1 1F1 2F1 3F0 3F1 3B0 2B0 3B1 2B1 3STEP 2STEP 1B0 0B0 1B1 0B1 1STEP "
            "0STEP\n");
}

// How often the weights of a stage are needed anew when only the latest pack fits: once a visit.
int VisitsOf(const std::vector<Action>& program, StageId stage) {
  int visits = 0;
  bool there = false;
  for (const Action& action : program) {
    if (action.stage == stage && !there) ++visits;
    there = action.stage == stage;
  }
  return visits;
}

// Harmony, section 3: weights come in for the forward and for the backward and go out once updated,
// 3 |W| for any number of microbatches. So a stage is visited twice, but for the last stage of each
// worker, which is still there when its backward begins.
TEST(HarmonyPP, VisitsEveryStageTwice) {
  for (const int microbatches : {1, 4, 16}) {
    const Schedule schedule =
        Built("harmony_pp", {.workers = 2, .chunks = 4, .microbatches = microbatches});
    for (int stage = 0; stage < 8; ++stage) {
      EXPECT_EQ(VisitsOf(schedule.programs[stage % 2], StageId(stage)), stage < 6 ? 2 : 1);
    }
  }
}

// Once for each group of each direction at most.
TEST(HarmonyPP, VisitsEveryStageOnceAGroup) {
  const Schedule schedule =
      Built("harmony_pp", {.workers = 2,
                           .chunks = 4,
                           .microbatches = 12,
                           .options = {.microbatch_group = 6, .backward_group = 3}});
  for (int stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(VisitsOf(schedule.programs[stage % 2], StageId(stage)), stage < 6 ? 2 + 4 : 2 + 3);
  }
}

// With these packs, all groups of 1 to 7 microbatches.
std::vector<ScheduleShape> ShapesOfGroups(int workers, int chunks, ScheduleOptions options) {
  std::vector<ScheduleShape> shapes;
  for (const int microbatches : {1, 3, 4, 7}) {
    for (int forward = 1; forward <= microbatches; ++forward) {
      for (int backward = 1; backward <= microbatches; ++backward) {
        options.microbatch_group = forward;
        options.backward_group = backward;
        shapes.push_back({workers, chunks, microbatches, options});
      }
    }
  }
  return shapes;
}

// Whole, in order and free of deadlocks, before and after messages are in, and gradients add up in
// ascending order.
void ExpectValid(const ScheduleShape& shape) {
  const ScheduleOptions& options = shape.options;
  SCOPED_TRACE(testing::Message() << shape.workers << " workers, " << shape.chunks
                                  << " chunks, packs " << options.forward_pack << " and "
                                  << options.backward_pack << ", groups "
                                  << options.microbatch_group << " and " << options.backward_group
                                  << " of " << shape.microbatches);
  const Schedule built = Built("harmony_pp", shape);
  EXPECT_EQ(ValidateSchedule(built, SchedulePurpose::kTraining), absl::OkStatus());
  const auto lowered = InsertCommunication(built);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(ValidateSchedule(*lowered, SchedulePurpose::kTraining), absl::OkStatus());
  for (int stage = 0; stage < StageCount(built); ++stage) {
    const std::vector<MicrobatchId> order = AccumulationOrder(built, StageId(stage));
    EXPECT_EQ(order.size(), static_cast<size_t>(shape.microbatches));
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
}

TEST(HarmonyPP, IsValidWithAnyGroupsForwardAndBackward) {
  for (const int workers : {1, 2, 4}) {
    for (const auto& [chunks, forward_pack, backward_pack] :
         {std::tuple{1, 1, 1}, {3, 1, 1}, {2, 2, 1}, {4, 1, 2}, {6, 3, 2}}) {
      const ScheduleOptions packs{.forward_pack = forward_pack, .backward_pack = backward_pack};
      for (const ScheduleShape& shape : ShapesOfGroups(workers, chunks, packs)) ExpectValid(shape);
    }
  }
}

TEST(L2L, TakesOneStageAtATime) {
  EXPECT_EQ(ToString(Built("l2l", {.workers = 1, .chunks = 3, .microbatches = 2})),
            "0F0 0F1 1F0 1F1 2F0 2F1 2B0 2B1 2STEP 1B0 1B1 1STEP 0B0 0B1 0STEP\n");
  EXPECT_EQ(Refused("l2l", {.workers = 2, .chunks = 3, .microbatches = 2}),
            absl::InvalidArgumentError("schedule l2l runs on one worker, not 2; its chunks are the "
                                       "stages that take turns there"));
}

}  // namespace
}  // namespace siphon
