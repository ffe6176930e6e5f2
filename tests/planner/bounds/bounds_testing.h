#ifndef SIPHON_TESTS_PLANNER_BOUNDS_BOUNDS_TESTING_H_
#define SIPHON_TESTS_PLANNER_BOUNDS_BOUNDS_TESTING_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/lower_bound.h"
#include "planner/drafts/planning_problem.h"
#include "planner/lower_schedule.h"
#include "tests/planner/random_problem.h"

namespace siphon {

inline constexpr BytesPerSecond kBytePerNano{1'000'000'000};

// F 10 us, B 20 us, 100 kB saved, no parameters.
inline LayerProfile PlainLayer() {
  return {.name = "plain",
          .forward = Nanos(10'000),
          .input_backward = Nanos(10'000),
          .weight_backward = Nanos(10'000),
          .saved = {{"saved", Bytes(100'000)}}};
}

// As many layers a stage as given, all alike, one capacity for all workers.
inline PlanningProblem ProblemOf(Schedule schedule, const LayerProfile& layer, Bytes capacity,
                                 int layers_per_stage = 1) {
  PlanningProblem problem{.schedule = std::move(schedule)};
  for (int stage = 0; stage < StageCount(problem.schedule); ++stage) {
    const int begin = stage * layers_per_stage;
    problem.partition.stages.push_back({begin, begin + layers_per_stage});
    for (int index = 0; index < layers_per_stage; ++index) {
      problem.profile.layers.push_back(layer);
    }
  }
  problem.capacity.assign(WorkerCount(problem.schedule), capacity);
  return problem;
}

// F0 I0 F1 I1 W0 W1 of two layers on one worker, each with 60,000 bytes that the Ws need and 50,000
// of optimizer state; 300,000 fit.
inline PlanningProblem QueuedWeightBackwards() {
  LayerProfile layer = PlainLayer();
  layer.saved = {{"saved", Bytes(60'000)}};
  layer.kept_for_weights = Bytes(60'000);
  layer.optimizer_state = Bytes(50'000);
  return ProblemOf(AppendOptimizerStep(ParseSchedule("0F0 0I0 0F1 0I1 0W0 0W1\n").value(), {}),
                   layer, Bytes(300'000), /*layers_per_stage=*/2);
}

// So many devices without links or host.
inline Topology Islands(int devices) {
  Topology topology;
  topology.devices.resize(devices);
  return topology;
}

inline BoundFacts FactsOf(const PlanningProblem& problem) {
  auto facts = BoundFactsOf(problem);
  EXPECT_TRUE(facts.ok()) << facts.status();
  return *std::move(facts);
}

inline LowerBound BoundOf(const PlanningProblem& problem) {
  const absl::StatusOr<LowerBound> bound = LowerBoundOf(problem);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.ok() ? *bound : LowerBound{};
}

// The part whose reason begins so.
inline std::optional<Nanos> PartOf(const LowerBound& bound, const std::string& reason) {
  for (const BoundPart& part : bound.parts) {
    if (part.reason.rfind(reason, 0) == 0) return part.time;
  }
  ADD_FAILURE() << "no part is named " << reason;
  return std::nullopt;
}

// A step that a plan takes.
struct RandomStep {
  PlanningProblem problem;  // whose capacities are just enough for the plan
  DeviceMapping mapping;
  Nanos step_time;
  Bytes saved;  // what the fullest worker would hold more without the plan
};

// Of all maps, and of its own.
inline void ExpectAboveItsBounds(RandomStep made, int seed) {
  for (const bool mapped : {false, true}) {
    if (mapped) made.problem.mapping = made.mapping;
    const LowerBound bound = BoundOf(made.problem);
    EXPECT_EQ(bound.cannot_fit, std::nullopt) << seed;
    for (const BoundPart& part : bound.parts) {
      EXPECT_LE(*part.time, made.step_time) << seed << " " << part.reason;
    }
  }
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_BOUNDS_BOUNDS_TESTING_H_
