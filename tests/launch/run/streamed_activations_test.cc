// Activations that leave under their forwards and come in under their backwards, in whole runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "launch/profile/predict_step.h"
#include "planner/memory/memory_kind.h"
#include "planner/simulator/simulate.h"
#include "swap/parking_layout.h"
#include "tests/launch/run/second_choice_runs.h"

namespace siphon {
namespace {

class StreamedActivations : public SecondChoices {
 protected:
  // Of which each stage has seven layers with long sequences, so that what a worker holds is mostly
  // activations.
  JobConfig LongJob() const {
    JobConfig job = Job(2);
    job.model.layers = 12;
    job.data.sequence_length = 64;
    return job;
  }
  // All activations are with the host.
  PreparedJob WithTiming(Bytes capacity, const SwapTiming& timing) const {
    JobConfig job = LongJob();
    job.memory.capacity = {capacity};
    job.memory.strategy = "vdnn";
    auto prepared = PrepareJob(job, {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    LowerAnew(*prepared, std::vector<SwapTiming>(prepared->plan.memory.stages.size(), timing));
    prepared->parking = LayOutParking(prepared->plan.memory, prepared->plan.training).value();
    return *std::move(prepared);
  }
  // However long copies take.
  static Bytes PredictedPeakOf(const PreparedJob& prepared, size_t worker) {
    PlanText text = prepared.plan_text;
    text.memory = prepared.plan.memory;
    text.training = prepared.plan.training;
    return Total(Simulate(SimulationInputOf(text)).value().peak[worker]);
  }
  static Bytes PeakOf(const SecondChoiceRun& run, size_t worker) {
    return Bytes(run.steps.back()["peak_bytes"][worker].get<int64_t>());
  }
};

TEST_F(StreamedActivations, TakeLessMemoryAndGiveTheSameBits) {
  const SecondChoiceRun unlimited = Train(Prepared(LongJob()), nullptr);
  ASSERT_TRUE(unlimited.status.ok()) << unlimited.status;
  const Bytes capacity = PeakOf(unlimited, 0) - Bytes(1);
  Bytes before = capacity;
  SwapTiming timing{.forwards_to_leave = 0, .actions_to_come_back = 0};
  for (const int groups : {SwapTiming::kAllGroups, 2, 0}) {
    SCOPED_TRACE(groups);
    timing.groups_out_behind = timing.groups_in_before = groups;
    const PreparedJob prepared = WithTiming(capacity, timing);
    const SecondChoiceRun run = Train(prepared, nullptr);
    ASSERT_TRUE(run.status.ok()) << run.status;
    ExpectSameWithin(before - Bytes(1), run, unlimited);
    const Bytes predicted = PredictedPeakOf(prepared, 0);
    EXPECT_LE(PeakOf(run, 0), predicted);
    EXPECT_GT(PeakOf(run, 0).value, predicted.value * 6 / 10);
    before = PeakOf(run, 0);
  }
}

// Their memory is refused as that of others.
TEST_F(StreamedActivations, AreComputedAgainWhereTheHostRefuses) {
  const SecondChoiceRun unlimited = Train(Prepared(LongJob()), nullptr);
  ASSERT_TRUE(unlimited.status.ok()) << unlimited.status;
  const Bytes capacity = PeakOf(unlimited, 0) - Bytes(1);
  const PreparedJob prepared =
      WithTiming(capacity, {.groups_out_behind = 1, .groups_in_before = 1});
  const SecondChoiceRun run = Train(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  ASSERT_TRUE(run.status.ok()) << run.status;
  ExpectSameWithin(capacity, run, unlimited);
  EXPECT_THAT(run.said, testing::ContainsRegex("computed again from step 1 on"));
}

}  // namespace
}  // namespace siphon
