#include "pipeline/schedules/build_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/lower_schedule.h"
#include "planner/validate_schedule.h"
#include "tests/pipeline/schedules/built_schedule.h"

namespace siphon {
namespace {

Schedule Lowered(const Schedule& schedule) {
  absl::StatusOr<Schedule> lowered = InsertCommunication(schedule);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? *lowered : Schedule{};
}

TEST(OneForwardOneBackward, TwoWorkersThreeMicrobatchesByHand) {
  EXPECT_EQ(ToString(Built("1f1b", {.workers = 2, .microbatches = 3})),
            "0F0 0F1 0B0 0F2 0B1 0B2\n"
            "1F0 1B0 1F1 1B1 1F2 1B2\n");
}

TEST(Gpipe, TwoWorkersThreeMicrobatchesByHand) {
  EXPECT_EQ(ToString(Built("gpipe", {.workers = 2, .microbatches = 3})),
            "0F0 0F1 0F2 0B0 0B1 0B2\n"
            "1F0 1F1 1F2 1B0 1B1 1B2\n");
}

TEST(OneForwardOneBackward, FourWorkersFourMicrobatchesAsPublished) {
  EXPECT_EQ(ToString(AppendOptimizerStep(Lowered(Built("1f1b", {.workers = 4, .microbatches = 4})),
                                         {StageId(0), StageId(3)})),
            "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0F3 0SEND_F3 0RECV_B0 0B0 0RECV_B1 0B1 "
            "0RECV_B2 0B2 0RECV_B3 0B3 0REDUCE_GRAD 0REDUCE_NORM 0STEP\n"
            "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_F2 1F2 1SEND_F2 1RECV_B0 1RECV_F3 "
            "1B0 1SEND_B0 1F3 1SEND_F3 1RECV_B1 1B1 1SEND_B1 1RECV_B2 1B2 1SEND_B2 1RECV_B3 1B3 "
            "1SEND_B3 1REDUCE_NORM 1STEP\n"
            "2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1 2RECV_B0 2RECV_F2 2B0 2SEND_B0 2F2 "
            "2SEND_F2 2RECV_B1 2RECV_F3 2B1 2SEND_B1 2F3 2SEND_F3 2RECV_B2 2B2 2SEND_B2 2RECV_B3 "
            "2B3 2SEND_B3 2REDUCE_NORM 2STEP\n"
            "3RECV_F0 3F0 3RECV_F1 3B0 3SEND_B0 3F1 3RECV_F2 3B1 3SEND_B1 3F2 3RECV_F3 3B2 "
            "3SEND_B2 3F3 3B3 3SEND_B3 3REDUCE_GRAD 3REDUCE_NORM 3STEP\n");
}

// DAPPLE, section 4: warm-ups of min(P - s, D) and min(2 (P - s) - 1, D).
TEST(Dapple, WarmsUpAsItsPolicySays) {
  EXPECT_EQ(ToString(Built("dapple", {.workers = 2, .microbatches = 3})),
            ToString(Built("1f1b", {.workers = 2, .microbatches = 3})));
  EXPECT_EQ(
      ToString(Built("dapple",
                     {.workers = 2, .microbatches = 4, .options = {.warm_up = WarmUpPolicy::kB}})),
      "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
      "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3\n");
  const auto peaks = [](WarmUpPolicy policy, int in_flight) {
    return PeakLiveActivations(
        Built("dapple", {.workers = 4,
                         .microbatches = 16,
                         .options = {.in_flight_limit = in_flight, .warm_up = policy}}));
  };
  EXPECT_EQ(peaks(WarmUpPolicy::kA, 0), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(peaks(WarmUpPolicy::kA, 2), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(peaks(WarmUpPolicy::kB, 0), (std::vector<int>{7, 5, 3, 1}));
  EXPECT_EQ(peaks(WarmUpPolicy::kB, 4), (std::vector<int>{4, 4, 3, 1}));
  EXPECT_EQ(BuildSchedule("dapple", {.workers = 2, .options = {.in_flight_limit = -1}}).status(),
            absl::InvalidArgumentError("schedule dapple: in_flight is -1; give the microbatches "
                                       "that fit into memory, or 0 for no limit"));
}

TEST(LoopedBfs, GoesBackwardFromTheNewestMicrobatch) {
  EXPECT_EQ(ToString(Built("looped_bfs", {.workers = 2, .chunks = 2, .microbatches = 2})),
            "0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0\n"
            "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0\n");
}

TEST(Interleaved1F1B, TwoWorkersTwoChunksByHand) {
  EXPECT_EQ(ToString(Built("interleaved_1f1b", {.workers = 2, .chunks = 2, .microbatches = 4})),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
}

// torch.distributed.pipelining refuses 9 microbatches in 2 rounds.
TEST(Interleaved1F1B, MakesRoundsOfUnequalSize) {
  for (const char* name : {"interleaved_1f1b", "interleaved_zero_bubble"}) {
    for (int workers = 1; workers <= 9; ++workers) {
      for (const int chunks : {1, 2, 3}) {
        for (int microbatches = 1; microbatches <= 20; ++microbatches) {
          const Schedule schedule =
              Built(name, {.workers = workers, .chunks = chunks, .microbatches = microbatches});
          EXPECT_EQ(ValidateSchedule(schedule, SchedulePurpose::kTraining), absl::OkStatus())
              << name << " " << workers << " " << chunks << " " << microbatches;
        }
      }
    }
  }
}

TEST(ZbH1, TwoWorkersThreeMicrobatchesByHand) {
  EXPECT_EQ(ToString(Built("zb_h1", {.workers = 2, .microbatches = 3})),
            "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
}

TEST(ZbH2, TwoWorkersFourMicrobatchesByHand) {
  EXPECT_EQ(ToString(Built("zb_h2", {.workers = 2, .microbatches = 4})),
            "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3\n");
}

// As torch.distributed.pipelining has it.
TEST(DualPipeV, TwoWorkersFourMicrobatches) {
  EXPECT_EQ(ToString(Built("dualpipev", {.workers = 2, .chunks = 2, .microbatches = 4})),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1)OVERLAP_F_B (3F2;0B0)OVERLAP_F_B 3B2 "
            "(3F3;0B1)OVERLAP_F_B 3B3 0I2 0W2 0I3 0W3\n"
            "1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0)OVERLAP_F_B (1F3;2B1)OVERLAP_F_B "
            "(2F3;1B1)OVERLAP_F_B 2B2 1B2 2I3 1I3 2W3 1W3\n");
}

TEST(Gpipe, KeepsEveryMicrobatchAlive) {
  for (const int workers : {1, 2, 3, 4, 8, 16}) {
    for (const int microbatches : {1, 3, 8, 64}) {
      EXPECT_EQ(
          PeakLiveActivations(Built("gpipe", {.workers = workers, .microbatches = microbatches})),
          std::vector<int>(workers, microbatches));
    }
  }
}

TEST(OneForwardOneBackward, KeepsAsManyMicrobatchesAsStagesFollow) {
  for (const int workers : {1, 2, 3, 4, 8, 16}) {
    for (const int microbatches : {1, 3, 8, 64}) {
      std::vector<int> theory;
      for (int stage = 0; stage < workers; ++stage) {
        theory.push_back(std::min(workers - stage, microbatches));
      }
      EXPECT_EQ(
          PeakLiveActivations(Built("1f1b", {.workers = workers, .microbatches = microbatches})),
          theory);
    }
  }
}

class EverySchedule : public testing::TestWithParam<ScheduleEntry> {};

// One that reads a file gets 1f1b's.
ScheduleOptions OptionsFor(const ScheduleEntry& entry, const ScheduleShape& shape) {
  ScheduleOptions options;
  if (std::find(entry.options.begin(), entry.options.end(), "csv") != entry.options.end()) {
    options.csv = ToCsv(Built(
        "1f1b", {.workers = shape.workers * shape.chunks, .microbatches = shape.microbatches}));
  }
  return options;
}

// The schedule in every shape of workers, chunks and microbatches that it takes.
std::vector<Schedule> InEveryShape(const ScheduleEntry& entry) {
  std::vector<Schedule> taken;
  for (const int workers : {1, 2, 3, 4, 8, 16}) {
    for (const int chunks : {1, 2, 4}) {
      for (const int microbatches : {1, 3, 8, 64}) {
        ScheduleShape shape = {.workers = workers, .chunks = chunks, .microbatches = microbatches};
        shape.options = OptionsFor(entry, shape);
        const absl::StatusOr<Schedule> schedule = BuildSchedule(entry.name, shape);
        if (schedule.ok()) {
          taken.push_back(*schedule);
        } else {
          EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
        }
      }
    }
  }
  return taken;
}

TEST_P(EverySchedule, IsValidBeforeAndAfterLoweringInEveryShape) {
  const std::vector<Schedule> shapes = InEveryShape(GetParam());
  EXPECT_GE(shapes.size(), 4u);
  for (const Schedule& compute : shapes) {
    SCOPED_TRACE(absl::StrCat(WorkerCount(compute), " workers, ", StageCount(compute), " stages, ",
                              compute.microbatches, " microbatches"));
    EXPECT_EQ(ValidateSchedule(compute, SchedulePurpose::kTraining), absl::OkStatus());
    const Schedule lowered = AppendOptimizerStep(Lowered(compute), {StageId(0)});
    EXPECT_EQ(ValidateSchedule(lowered, SchedulePurpose::kTraining), absl::OkStatus());
    EXPECT_EQ(PeakLiveActivations(lowered), PeakLiveActivations(compute));
    const absl::StatusOr<Schedule> parsed = ParseSchedule(ToString(lowered));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->programs, lowered.programs);
    EXPECT_EQ(parsed->worker_of_stage, lowered.worker_of_stage);
    EXPECT_EQ(parsed->microbatches, lowered.microbatches);
  }
}

TEST_P(EverySchedule, HasAForwardOnlyFormForValidation) {
  for (const Schedule& schedule : InEveryShape(GetParam())) {
    const int microbatches = schedule.microbatches / 2 + 1;
    const Schedule forward = BuildForwardOnly(schedule, microbatches);
    EXPECT_EQ(forward.microbatches, microbatches);
    EXPECT_EQ(ValidateSchedule(forward, SchedulePurpose::kForwardOnly), absl::OkStatus());
    EXPECT_EQ(ValidateSchedule(Lowered(forward), SchedulePurpose::kForwardOnly), absl::OkStatus());
  }
}

TEST_P(EverySchedule, RefusesShapesWithNothingInThem) {
  const std::string name = GetParam().name;
  EXPECT_EQ(
      BuildSchedule(name, {.workers = 0, .microbatches = 3}).status(),
      absl::InvalidArgumentError(absl::StrCat(
          "schedule ", name, ": 0 workers, 1 chunks and 3 microbatches; each must be at least 1")));
  EXPECT_EQ(BuildSchedule(name, {.workers = 2, .microbatches = -1}).status(),
            absl::InvalidArgumentError(absl::StrCat(
                "schedule ", name,
                ": 2 workers, 1 chunks and -1 microbatches; each must be at least 1")));
  EXPECT_EQ(
      BuildSchedule(name, {.workers = 2'000'000'000, .chunks = 2, .microbatches = 8}).status(),
      absl::InvalidArgumentError(
          absl::StrCat("schedule ", name,
                       ": 4000000000 stages times 8 microbatches is more than the 10000000 that a "
                       "schedule may have")));
}

INSTANTIATE_TEST_SUITE_P(Registry, EverySchedule, testing::ValuesIn(ScheduleRegistry()),
                         [](const testing::TestParamInfo<ScheduleEntry>& info) {
                           return info.param.name;
                         });

TEST(BuildForwardOnly, KeepsThePlacementOfSeveralStagesAWorker) {
  Schedule like;
  like.worker_of_stage = {WorkerId(0), WorkerId(1), WorkerId(0), WorkerId(1)};
  like.programs.resize(2);
  const Schedule forward = BuildForwardOnly(like, 2);
  EXPECT_EQ(ToString(forward),
            "0F0 2F0 0F1 2F1\n"
            "1F0 3F0 1F1 3F1\n");
  EXPECT_EQ(ValidateSchedule(Lowered(forward), SchedulePurpose::kForwardOnly), absl::OkStatus());
}

TEST(BuildSchedule, RefusesChunksWhereAScheduleHasNone) {
  EXPECT_EQ(BuildSchedule("gpipe", {.workers = 2, .chunks = 2, .microbatches = 3}).status(),
            absl::InvalidArgumentError("schedule gpipe takes one stage a worker, not 2 chunks"));
  EXPECT_EQ(BuildSchedule("1f1b", {.workers = 2, .chunks = 3, .microbatches = 3}).status(),
            absl::InvalidArgumentError("schedule 1f1b takes one stage a worker, not 3 chunks"));
}

TEST_P(EverySchedule, RefusesOptionsThatItDoesNotUse) {
  struct Given {
    std::string name;
    ScheduleOptions options;
  };
  const std::vector<Given> all = {{"in_flight", {.in_flight_limit = 2}},
                                  {"warm_up", {.warm_up = WarmUpPolicy::kB}},
                                  {"depth", {.depth = {2, 1}}},
                                  {"forward_pack", {.forward_pack = 2}},
                                  {"backward_pack", {.backward_pack = 2}},
                                  {"microbatch_group", {.microbatch_group = 2}},
                                  {"backward_group", {.backward_group = 2}},
                                  {"csv", {.csv = "0F0"}}};
  const ScheduleEntry& entry = GetParam();
  for (const std::string& used : entry.options) {
    EXPECT_TRUE(
        std::any_of(all.begin(), all.end(), [&](const Given& given) { return given.name == used; }))
        << used << " is no option";
  }
  for (const Given& given : all) {
    EXPECT_EQ(GivenOptions(given.options), std::vector<std::string>{given.name});
    if (std::find(entry.options.begin(), entry.options.end(), given.name) != entry.options.end()) {
      continue;
    }
    const absl::Status status =
        BuildSchedule(entry.name, {.workers = 2, .microbatches = 4, .options = given.options})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        testing::StartsWith(absl::StrCat("schedule ", entry.name, " takes no ", given.name, "; ")));
  }
}

TEST(BuildSchedule, SaysWhichOptionsAScheduleTakes) {
  EXPECT_EQ(BuildSchedule("gpipe", {.workers = 2, .options = {.depth = {2, 1}}}).status(),
            absl::InvalidArgumentError("schedule gpipe takes no depth; it has no options"));
  EXPECT_EQ(BuildSchedule("dapple", {.workers = 2, .options = {.depth = {2, 1}}}).status(),
            absl::InvalidArgumentError(
                "schedule dapple takes no depth; its options: in_flight, warm_up"));
}

TEST(BuildSchedule, ListsTheKnownSchedules) {
  std::string expected = "unknown schedule '1f2b'; known: ";
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    if (expected.back() != ' ') expected += ", ";
    expected += entry.name;
    EXPECT_FALSE(entry.summary.empty());
  }
  EXPECT_EQ(BuildSchedule("1f2b", {}).status(), absl::NotFoundError(expected));
}

}  // namespace
}  // namespace siphon
