#ifndef SIPHON_TESTS_PLANNER_BOUNDS_BOUNDS_TESTING_H_
#define SIPHON_TESTS_PLANNER_BOUNDS_BOUNDS_TESTING_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/bounds/bound_facts.h"
#include "planner/bounds/lower_bound.h"
#include "planner/lower_schedule.h"
#include "planner/strategies/planning_problem.h"
#include "tests/planner/dice.h"

namespace siphon {

inline constexpr BytesPerSecond kBytePerNano{1'000'000'000};

inline Schedule ScheduleOf(const std::string& name, int workers, int microbatches) {
  return BuildSchedule(name, {.workers = workers,
                              .chunks = FindSchedule(name)->chunks,
                              .microbatches = microbatches})
      .value();
}

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

inline Topology RandomTopology(int devices, Dice& dice) {
  const auto rate = [&] { return BytesPerSecond(dice.Roll(1, 20) * 50'000'000LL); };
  Topology topology = dice.Roll(0, 1) == 0
                          ? UniformTopology(devices, rate(), Nanos(dice.Roll(0, 5)))
                          : NvswitchTopology(devices, rate(), Nanos(dice.Roll(0, 5)));
  std::erase_if(topology.links, [&](const TopologyLink&) { return dice.Roll(0, 4) == 0; });
  for (TopologyLink& link : topology.links) link.rate = rate();
  const int64_t alone = dice.Roll(1, 9) * 60'000'000LL;
  return WithHost(topology, dice.Roll(1, 3),
                  {.to_host = BytesPerSecond(alone),
                   .from_host = BytesPerSecond(alone),
                   .to_host_both = BytesPerSecond(alone * 2 / 3),
                   .from_host_both = BytesPerSecond(alone * 2 / 3),
                   .latency = Nanos(dice.Roll(0, 3))});
}

// One tensor of so many bytes, or, by that number, several that are made one after the other.
inline std::vector<SavedTensor> SavedInParts(Bytes all) {
  const int64_t bytes = all.value;
  if (bytes % 3 == 0) return {{"saved", all}};
  const int made = static_cast<int>(bytes * 100 % 900'000);
  return {{"first", Bytes(bytes / 3), made / 4},
          {"second", Bytes(bytes / 4), made},
          {"third", Bytes(bytes - bytes / 3 - bytes / 4), 1'000'000}};
}

// Layers, stages, schedule and topology at random; no capacity.
inline PlanningProblem RandomProblem(Dice& dice) {
  constexpr const char* kNames[] = {"gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zbv"};
  const int workers = dice.Roll(1, 5);
  PlanningProblem problem{
      .schedule = ScheduleOf(kNames[dice.Roll(0, 4)], workers, workers * dice.Roll(2, 3))};
  if (dice.Roll(0, 1) == 0) {
    problem.schedule = AppendOptimizerStep(InsertCommunication(problem.schedule).value(), {});
  }
  for (int stage = 0; stage < StageCount(problem.schedule); ++stage) {
    const int begin = static_cast<int>(problem.profile.layers.size());
    const int layers = dice.Roll(1, 3);
    problem.partition.stages.push_back({begin, begin + layers});
    for (int layer = 0; layer < layers; ++layer) {
      problem.profile.layers.push_back({.forward = Nanos(dice.Roll(0, 2000)),
                                        .input_backward = Nanos(dice.Roll(0, 2000)),
                                        .weight_backward = Nanos(dice.Roll(0, 2000)),
                                        .optimizer = Nanos(dice.Roll(0, 900)),
                                        .parameters = Bytes(dice.Roll(0, 9'000)),
                                        .gradients = Bytes(dice.Roll(0, 9'000)),
                                        .optimizer_state = Bytes(dice.Roll(0, 30'000)),
                                        .boundary = Bytes(dice.Roll(0, 3'000)),
                                        .backward_workspace = Bytes(dice.Roll(0, 900)),
                                        .saved = SavedInParts(Bytes(dice.Roll(0, 9'000)))});
    }
  }
  problem.profile.layers.back().boundary = Bytes(0);
  if (dice.Roll(0, 3) > 0) problem.topology = RandomTopology(workers + dice.Roll(0, 1), dice);
  problem.transport = {.latency = Nanos(dice.Roll(0, 50)),
                       .rate = BytesPerSecond(dice.Roll(0, 3) * 1'000'000'000LL),
                       .host_rate = BytesPerSecond(dice.Roll(0, 3) * 100'000'000LL),
                       .copy_rate = BytesPerSecond(dice.Roll(0, 2) * 9'000'000'000LL)};
  problem.host_step = Nanos(dice.Roll(0, 1) * dice.Roll(0, 3'000));
  return problem;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_BOUNDS_BOUNDS_TESTING_H_
