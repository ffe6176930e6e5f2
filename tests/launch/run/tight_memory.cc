#include "tests/launch/run/tight_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "launch/run/parking/parking_room.h"
#include "planner/status.h"
#include "planner/training_plan.h"
#include "planner/units.h"
#include "tests/conformance/memory_shapes.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"

namespace siphon {
namespace {

// Capacities, of what keeping everything takes.
constexpr int64_t kPercents[] = {95, 80, 65};

// Rather too much is predicted than too little (TightStrategy::most_percent): what a layer takes
// for itself, and what a pass sends on, count all the time. Where the backward is split, or in 16
// bits: there a whole forward of one layer counts all the time as well, which is much of what a
// worker with little holds.
constexpr double kForwardPercent = 80;

JobConfig TightJobOf(const MemoryCase& one, int stages, const std::string& strategy) {
  JobConfig job = JobOf(one.shape);
  job.train.global_batch = one.shape.microbatch * one.shape.microbatches;
  job.train.clip_norm = FindSchedule(one.schedule)->update == WeightUpdate::kJustInTime ? 0.0 : 1.0;
  job.pipeline.schedule = one.schedule;
  job.pipeline.stages = stages;
  job.memory.strategy = strategy;
  return job;
}

// What the fullest worker holds where everything is kept, rings included.
Bytes LargestKept(const MemoryCase& one, const TrainingPlan& shape) {
  const auto prepared = PrepareJob(TightJobOf(one, StageCount(shape.training), "keep"), {});
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

// Whether anything left, with this capacity.
bool StaysWithin(const MemoryCase& one, const TrainingPlan& shape, const TightStrategy& strategy,
                 Bytes capacity) {
  JobConfig job = TightJobOf(one, StageCount(shape.training), strategy.name);
  job.memory.capacity = {capacity};
  job.pipeline.transport = strategy.transport;
  const auto prepared = PrepareJob(job, {});
  if (absl::IsResourceExhausted(prepared.status())) return false;
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok() || !strategy.lets_leave(*prepared)) return false;
  const bool in_rings = strategy.transport != "mpi";
  const auto measured = MeasurePeaks(one, prepared->model.spec, prepared->plan,
                                     in_rings ? MessagePath::kRings : MessagePath::kRendezvous);
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
    EXPECT_GE(error, strategy.least_percent);
    if (!in_rings) continue;  // how much is sent and not asked for yet is the machine's affair
    const bool forward = SplitsBackward(shape.training) || one.shape.precision != "fp32";
    EXPECT_LE(error, forward ? kForwardPercent : strategy.most_percent);
  }
  return true;
}

}  // namespace

void ExpectWithinCapacities(const std::string& schedule,
                            const std::vector<TightStrategy>& strategies) {
  int left = 0;
  bool splits_backward = false;
  // A third of the place in the registry, so that each shape meets each capacity as well: a
  // schedule takes other shapes than the two beside it.
  const std::vector<std::string> names = LiveScheduleNames();
  const auto place = std::find(names.begin(), names.end(), schedule) - names.begin();
  size_t turn = static_cast<size_t>(place) / std::size(kPercents);
  size_t case_number = static_cast<size_t>(place);
  for (const MemoryCase& one : MemoryCases(schedule)) {
    SCOPED_TRACE(one.shape.name);
    // Every second shape, of the next schedule the others.
    if (++case_number % 2 == 0 && !TakesAllCases()) continue;
    // Refused: its loss scale has to know all gradients before the first step.
    const bool just_in_time = FindSchedule(schedule)->update == WeightUpdate::kJustInTime;
    if (just_in_time && one.shape.precision == "fp16") continue;
    const auto shape = PlanOf(one, ModelOf(one.shape));
    ASSERT_TRUE(shape.ok()) << shape.status();
    splits_backward = SplitsBackward(shape->training);
    const Bytes kept = LargestKept(one, *shape);
    ++turn;
    for (size_t number = 0; number < strategies.size(); ++number) {
      // Of two strategies one, of more every fourth, for each shape and each schedule others.
      const size_t taken = strategies.size() > 2 ? 4 : strategies.size();
      if ((turn + number) % taken != 0 && !TakesAllCases()) continue;
      const TightStrategy& strategy = strategies[number];
      // The next one where this one is too little, or enough to keep everything.
      for (size_t tried = 0; tried < std::size(kPercents); ++tried) {
        const int64_t percent = kPercents[(turn + number + tried) % std::size(kPercents)];
        SCOPED_TRACE(testing::Message() << strategy.name << " over " << strategy.transport << " at "
                                        << percent << " percent");
        const Bytes capacity(kept.value / 100 * percent);
        if (!StaysWithin(one, *shape, strategy, capacity)) continue;
        ++left;
        if (!TakesAllCases()) break;
      }
    }
  }
  EXPECT_TRUE(splits_backward || left > 0);
}

bool ExpectWithinCapacities(const MemoryCase& one, const TightStrategy& strategy) {
  SCOPED_TRACE(testing::Message() << one.shape.name << ", " << strategy.name);
  const auto shape = PlanOf(one, ModelOf(one.shape));
  EXPECT_TRUE(shape.ok()) << shape.status();
  if (!shape.ok()) return false;
  const Bytes kept = LargestKept(one, *shape);
  return std::any_of(std::rbegin(kPercents), std::rend(kPercents), [&](int64_t percent) {
    SCOPED_TRACE(testing::Message() << percent << " percent");
    return StaysWithin(one, *shape, strategy, Bytes(kept.value / 100 * percent));
  });
}

std::vector<std::string> TightScheduleNames() {
  std::vector<std::string> names = LiveScheduleNames();
  std::erase(names, "csv");
  return names;
}

}  // namespace siphon
