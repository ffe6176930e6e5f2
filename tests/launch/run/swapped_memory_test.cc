// Plans that park activations against reality: no worker ever holds more than its capacity, with
// what others park there, and what was predicted is close. Three or four shapes under every
// schedule that runs live; SIPHON_TEST_ALL=1 takes all ten.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "launch/run/parking_room.h"
#include "launch/run/prepare_job.h"
#include "pipeline/torch/counting_allocator.h"
#include "planner/status.h"
#include "tests/conformance/memory_shapes.h"
#include "tests/pipeline/live_schedules.h"

namespace siphon {
namespace {

// Rather too much is predicted than too little: what a pass sends on counts all the time.
constexpr double kPercent = 25;
constexpr double kSplitPercent = 60;  // where the backward is split

class SwappedMemory : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

JobConfig JobOf(const MemoryCase& one, int stages, const std::string& strategy) {
  JobConfig job = JobOf(one.shape);
  job.train.global_batch = one.shape.microbatch * one.shape.microbatches;
  job.train.clip_norm = FindSchedule(one.schedule)->update == WeightUpdate::kJustInTime ? 0.0 : 1.0;
  job.pipeline.schedule = one.schedule;
  job.pipeline.stages = stages;
  job.memory.strategy = strategy;
  return job;
}

// Whether anything was parked, with this capacity.
bool Compare(const MemoryCase& one, const TrainingPlan& shape, const std::string& strategy,
             Bytes capacity) {
  JobConfig job = JobOf(one, StageCount(shape.training), strategy);
  job.memory.capacity = {capacity};
  const auto prepared = PrepareJob(job, {});
  if (absl::IsResourceExhausted(prepared.status())) return false;
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok() || prepared->parking.empty()) return false;
  const auto measured = MeasurePeaks(one, prepared->model.spec, prepared->plan);
  EXPECT_TRUE(measured.ok()) << measured.status();
  if (!measured.ok()) return false;
  for (size_t worker = 0; worker < measured->size(); ++worker) {
    SCOPED_TRACE(testing::Message() << "worker " << worker);
    const Bytes rings = prepared->plan_text.workers[worker].communication;
    const Bytes lent = LentByWorker(*prepared, WorkerId(static_cast<int>(worker)));
    const Bytes peak = (*measured)[worker].total + lent;
    EXPECT_LE(peak, capacity - rings);
    const Bytes predicted = prepared->plan_text.predicted.peak[worker] - rings;
    const double error = ErrorInPercent(one, worker, predicted, peak);
    EXPECT_GE(error, 0);
    EXPECT_LE(error, SplitsBackward(shape.training) ? kSplitPercent : kPercent);
  }
  return true;
}

// What the fullest worker holds where everything is kept, rings included.
Bytes LargestKept(const MemoryCase& one, const TrainingPlan& shape) {
  const auto prepared = PrepareJob(JobOf(one, StageCount(shape.training), "keep"), {});
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok()) return Bytes(0);
  const auto measured = MeasurePeaks(one, prepared->model.spec, prepared->plan);
  EXPECT_TRUE(measured.ok()) << measured.status();
  Bytes largest;
  for (size_t worker = 0; measured.ok() && worker < measured->size(); ++worker) {
    const Bytes rings = prepared->plan_text.workers[worker].communication;
    largest = std::max(largest, (*measured)[worker].total + rings);
  }
  return largest;
}

TEST_P(SwappedMemory, StaysWithinItsCapacity) {
  int parked = 0;
  bool splits_backward = false;
  for (const MemoryCase& one : MemoryCases(GetParam())) {
    SCOPED_TRACE(one.shape.name);
    const auto shape = PlanOf(one, BuildModelSpec(one.shape.model).value());
    ASSERT_TRUE(shape.ok()) << shape.status();
    splits_backward = SplitsBackward(shape->training);
    const Bytes kept = LargestKept(one, *shape);
    for (const char* strategy : {"d2d_swap", "host_swap"}) {
      for (const int64_t percent : {95, 80, 65}) {
        SCOPED_TRACE(testing::Message() << strategy << " at " << percent << " percent");
        parked += Compare(one, *shape, strategy, Bytes(kept.value / 100 * percent)) ? 1 : 0;
      }
    }
  }
  // Where the backward is split, what waits for W is often more than what would leave.
  EXPECT_TRUE(splits_backward || parked > 0);
}

// All but the one that is a file's.
std::vector<std::string> Names() {
  std::vector<std::string> names = LiveScheduleNames();
  std::erase(names, "csv");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Schedules, SwappedMemory, testing::ValuesIn(Names()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
