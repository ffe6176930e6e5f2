// A few steps in which activations and training state leave by every way that there is, small
// enough for sanitizers: the bits of one process. conformance_test does the same with every
// schedule and model.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "tests/conformance/conformance.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

// Stages of three layers: {embedding, block, block} and {block, block, head}.
const StagePartition kTwoStages = {.stages = {{0, 3}, {3, 6}}};

void ExpectSameBitsWhereActivationsLeave(const std::string& schedule_name) {
  const auto schedule = BuildSchedule(schedule_name, {.workers = 2, .microbatches = 4});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  Job job{.model = WithDropout(TinyGpt(/*blocks=*/4), 0.1), .steps = 2, .clip_norm = 0.05};
  const Expected expected = RunReference(job, OrdersOf(*schedule, kTwoStages));
  for (const int run : {1, 2}) {
    SCOPED_TRACE(testing::Message() << "runs of " << run);
    job.leaving_run = run;
    job.leaving = {Placement::kPeerSwap, Placement::kRecompute, Placement::kHostSwap};
    ExpectSameBits(job, expected, kTwoStages, *schedule);
  }
}

// Of each layer only what it saves first, up to different tensors.
void ExpectSameBitsWhereFirstTensorsLeave(const ModelOptions& model, const std::string& schedule) {
  const auto built = BuildSchedule(schedule, {.workers = 2, .microbatches = 4});
  ASSERT_TRUE(built.ok()) << built.status();
  Job job{.model = model, .steps = 2, .clip_norm = 0.05};
  const Expected expected = RunReference(job, OrdersOf(*built, kTwoStages));
  job.leaving_run = 1;
  job.first_tensors = true;
  for (const std::vector<Placement>& leaving :
       {std::vector{Placement::kRecompute},
        {Placement::kPeerSwap},
        {Placement::kHostSwap, Placement::kRecompute, Placement::kPeerSwap}}) {
    SCOPED_TRACE(testing::Message() << "first to " << PlacementName(leaving.front()));
    job.leaving = leaving;
    ExpectSameBits(job, expected, kTwoStages, *built);
  }
}

TEST(SwappedSteps, GiveTheBitsOfOneProcessWhereFirstTensorsLeave) {
  ExpectSameBitsWhereFirstTensorsLeave(TinyGpt(/*blocks=*/4), "1f1b");
}

TEST(SwappedSteps, GiveTheBitsOfOneProcessWhereFirstTensorsLeaveWithAttentionWrittenOut) {
  ExpectSameBitsWhereFirstTensorsLeave(WithDropout(TinyGpt(/*blocks=*/4), 0.1), "zb_h1");
}

TEST(SwappedSteps, GiveTheBitsOfOneProcess) { ExpectSameBitsWhereActivationsLeave("1f1b"); }

TEST(SwappedSteps, GiveTheBitsOfOneProcessWhereTheBackwardIsSplit) {
  ExpectSameBitsWhereActivationsLeave("zb_h1");
}

// One stage's optimizer step on the host, beside state that is away layer by layer.
TEST(SwappedSteps, GiveTheBitsOfOneProcessWhereStateLeavesAndAStepIsOnTheHost) {
  const auto schedule = BuildSchedule("1f1b", {.workers = 2, .microbatches = 4});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  Job job{.model = WithDropout(TinyGpt(/*blocks=*/4), 0.1), .steps = 2, .clip_norm = 0.05};
  const Expected expected = RunReference(job, OrdersOf(*schedule, kTwoStages));
  job.leaving_run = 1;
  job.leaving = {Placement::kHostSwap};
  job.state = {Placement::kHostSwap, Placement::kPeerSwap, Placement::kKeep};
  job.residence = WeightResidence::kLayerByLayer;
  job.updates = {UpdatePlace::kHost, UpdatePlace::kDevice};
  ExpectSameBits(job, expected, kTwoStages, *schedule);
}

// In 16 bits masters leave with the moments, and a step that overflows changes nothing anywhere.
TEST(SwappedSteps, GiveTheBitsOfOneProcessInSixteenBits) {
  const auto schedule = BuildSchedule("1f1b", {.workers = 2, .microbatches = 3});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  for (const Precision precision : {Precision::kBFloat16, Precision::kFloat16}) {
    Job job{.model = WithDropout(TinyGpt(/*blocks=*/4), 0.1),
            .microbatches = 3,
            .steps = 3,
            .clip_norm = 0.05,
            .precision = precision,
            .loss_scale = precision == Precision::kFloat16 ? float{1 << 18} : 0};
    const Expected expected = RunReference(job, OrdersOf(*schedule, kTwoStages));
    job.leaving_run = 1;
    job.leaving = {Placement::kRecompute, Placement::kHostSwap};
    job.state = {Placement::kHostSwap, Placement::kPeerSwap, Placement::kKeep};
    job.residence = WeightResidence::kLayerByLayer;
    job.updates = {UpdatePlace::kHost, UpdatePlace::kDevice};
    ExpectSameBits(job, expected, kTwoStages, *schedule);
  }
}

}  // namespace
}  // namespace siphon
