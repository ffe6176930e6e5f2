// The suites of schedules, models and strategies in 16-bit precisions: the bits of one process that
// computes in the same one. Each schedule meets one model and one way of leaving, in turn, so that
// every pair of neighbours in these lists is there; all of all with SIPHON_TEST_ALL=1.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "tests/conformance/conformance.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

constexpr int kModels = 6;
constexpr int kBlocks = 6;  // 8 layers

ModelOptions WrittenOut(ModelOptions model) {
  model.flash_attention = false;
  return model;
}

ModelOptions ModelAt(int index) {
  switch (index % kModels) {
    case 0:
      return WithDropout(TinyGpt(kBlocks), 0.1);
    case 1:
      return TinyBert(kBlocks);
    case 2:
      return Untied(TinyGpt(kBlocks));
    case 3:
      return WithDropout(TinyMlp(kBlocks), 0.1);
    case 4:
      return WrittenOut(TinyGpt(kBlocks));
    default:
      return WithDropout(Untied(TinyBert(kBlocks)), 0.1);
  }
}

constexpr int kWays = 5;

// What does not stay, and where it goes.
void SetWay(int index, Job& job) {
  constexpr Placement kHost = Placement::kHostSwap, kPeer = Placement::kPeerSwap,
                      kNvme = Placement::kNvmeSwap, kKeep = Placement::kKeep,
                      kAgain = Placement::kRecompute;
  job.leaving_run = 1 + index / kWays % 2;
  switch (index % kWays) {
    case 0:  // everything is kept
      job.leaving_run = 0;
      return;
    case 1:
      job.leaving = {kPeer, kAgain, kHost, kKeep, kNvme};
      job.first_tensors = job.leaving_run == 1;
      return;
    case 2:
      job.leaving = {kKeep, kAgain};
      job.state = {kHost, kPeer};
      return;
    case 3:
      job.leaving = {kAgain, kPeer};
      job.state = {kPeer, kHost, kKeep};
      job.residence = WeightResidence::kLayerByLayer;
      job.timing = {
          .groups_away_between_steps = 1, .forwards_to_leave_home = 2, .actions_to_come_home = 2};
      return;
    default:
      job.leaving = {kKeep, kHost};
      job.state = {kHost, kKeep, kHost, kPeer};
      job.updates = {UpdatePlace::kHost, UpdatePlace::kDevice};
      return;
  }
}

// With 2 workers, or 1 where the schedule takes no other shape.
std::optional<Schedule> SmallSchedule(const ScheduleEntry& entry) {
  for (const int workers : {2, 1}) {
    for (const int microbatches : {3, 4, 5, 6}) {
      auto schedule = BuildLive(
          entry, {.workers = workers, .chunks = entry.chunks, .microbatches = microbatches});
      if (schedule.has_value()) return schedule;
    }
  }
  return std::nullopt;
}

// As trained: a loss scale that changes small gradients.
float ScaleOf(Precision precision) { return precision == Precision::kFloat16 ? 4096 : 0; }

void ExpectSameBitsUnder(const ScheduleEntry& entry, int model, int way, Precision precision) {
  SCOPED_TRACE(absl::StrCat(entry.name, ", model ", model, ", way ", way));
  const auto schedule = SmallSchedule(entry);
  ASSERT_TRUE(schedule.has_value());
  Job job{.model = ModelAt(model),
          .microbatches = schedule->microbatches,
          .steps = 2,
          .clip_norm = 0.05,
          .precision = precision,
          .loss_scale = ScaleOf(precision)};
  if (entry.update == WeightUpdate::kJustInTime) {  // neither knows the norm in time
    job.clip_norm = 0;
    job.loss_scale = 0;
  }
  SetWay(way, job);
  const auto spec = BuildModelSpec(job.model);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto partition = PartitionModel(*spec, StageCount(*schedule), "balanced");
  ASSERT_TRUE(partition.ok()) << partition.status();
  const Expected expected = RunReference(job, OrdersOf(*schedule, *partition));
  ExpectSameBits(job, expected, *partition, *schedule);
}

class PrecisionConformance : public testing::TestWithParam<Precision> {};

TEST_P(PrecisionConformance, EveryScheduleTrainsLikeOneProcess) {
  int index = 0;
  for (const ScheduleEntry& entry : LiveSchedules()) {
    ++index;
    if (!TakesAllCases()) {
      ExpectSameBitsUnder(entry, index, index + index / kModels, GetParam());
      continue;
    }
    for (int model = 0; model < kModels; ++model) {
      for (int way = 0; way < 2 * kWays; ++way) {
        ExpectSameBitsUnder(entry, model, way, GetParam());
      }
    }
  }
}

TEST_P(PrecisionConformance, EveryCutTrainsLikeOneProcess) {
  for (int model = 0; model < kModels; model += TakesAllCases() ? 1 : 2) {
    Job job{.model = ModelAt(model), .microbatches = 3, .steps = 2, .precision = GetParam()};
    job.clip_norm = 0.05;
    const Expected expected = RunReference(job);
    for (const std::vector<int>& layers : {std::vector{8}, {1, 6, 1}, {3, 1, 2, 2}}) {
      SCOPED_TRACE(absl::StrCat("model ", model, ", cut ", testing::PrintToString(layers)));
      const auto partition = ExplicitPartition(expected.spec, layers);
      ASSERT_TRUE(partition.ok()) << partition.status();
      const auto program = BuildSchedule(
          "1f1b", {.workers = static_cast<int>(layers.size()), .microbatches = job.microbatches});
      ASSERT_TRUE(program.ok()) << program.status();
      ExpectSameBits(job, expected, *partition, *program);
    }
  }
}

TEST_P(PrecisionConformance, EveryOptimizerTrainsLikeOneProcess) {
  for (const std::string& name : KnownOptimizers()) {
    SCOPED_TRACE(name);
    const Job job{.model = WithDropout(TinyGpt(2), 0.1),
                  .steps = 3,
                  .optimizer = {.name = name, .weight_decay = 0.1, .momentum = 0.9},
                  .clip_norm = 0.1,
                  .precision = GetParam()};
    const Expected expected = RunReference(job);
    const auto partition = PartitionModel(expected.spec, 2, "even");
    ASSERT_TRUE(partition.ok()) << partition.status();
    const auto program = BuildSchedule("1f1b", {.workers = 2, .microbatches = job.microbatches});
    ASSERT_TRUE(program.ok()) << program.status();
    ExpectSameBits(job, expected, *partition, *program);
  }
}

// Scales from which the first steps overflow: they are left out on all stages alike, whatever is
// away between steps, and Adam counts the updates that were made.
TEST(LossScaleConformance, SkippedStepsAreSkippedLikeInOneProcess) {
  for (const int way : {0, 2, 3, 4}) {
    SCOPED_TRACE(way);
    Job job{.model = WithDropout(TinyGpt(kBlocks), 0.1),
            .microbatches = 3,
            .steps = 5,
            .clip_norm = 0.05,
            .precision = Precision::kFloat16,
            .loss_scale = 1 << 20};
    SetWay(way, job);
    const Expected expected = RunReference(job);
    EXPECT_TRUE(expected.steps.front().skipped) << "the scale is too small to overflow";
    EXPECT_FALSE(expected.steps.back().skipped) << "the scale is too large";
    const auto partition = PartitionModel(expected.spec, 2, "even");
    ASSERT_TRUE(partition.ok()) << partition.status();
    const auto program = BuildSchedule("1f1b", {.workers = 2, .microbatches = job.microbatches});
    ASSERT_TRUE(program.ok()) << program.status();
    ExpectSameBits(job, expected, *partition, *program);
  }
}

// A comparison of float32 with float32 would pass all of the above.
TEST_P(PrecisionConformance, ThePrecisionMatters) {
  const Job job{.model = TinyGpt(2), .steps = 2, .precision = GetParam()};
  Job wide = job;
  wide.precision = Precision::kFloat32;
  const Expected narrow_run = RunReference(job), wide_run = RunReference(wide);
  EXPECT_FALSE(SameBits(narrow_run.steps[0].loss, wide_run.steps[0].loss));
  EXPECT_FALSE(SameBits(narrow_run.parameters, wide_run.parameters));
  for (size_t step = 0; step < wide_run.steps.size(); ++step) {
    EXPECT_NEAR(narrow_run.steps[step].loss, wide_run.steps[step].loss, 0.02);
    const double norm = wide_run.steps[step].gradient_norm;
    EXPECT_NEAR(narrow_run.steps[step].gradient_norm, norm, 0.02 * norm);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, PrecisionConformance,
                         testing::Values(Precision::kBFloat16, Precision::kFloat16),
                         [](const auto& info) {
                           return info.param == Precision::kBFloat16 ? "bf16" : "fp16";
                         });

}  // namespace
}  // namespace siphon
