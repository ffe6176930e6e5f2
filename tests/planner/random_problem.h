#ifndef SIPHON_TESTS_PLANNER_RANDOM_PROBLEM_H_
#define SIPHON_TESTS_PLANNER_RANDOM_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/drafts/planning_problem.h"
#include "planner/lower_schedule.h"
#include "tests/planner/dice.h"
#include "tests/planner/random_host.h"

namespace siphon {

inline Schedule ScheduleOf(const std::string& name, int workers, int microbatches) {
  return BuildSchedule(name, {.workers = workers,
                              .chunks = FindSchedule(name)->chunks,
                              .microbatches = microbatches})
      .value();
}

inline Topology RandomTopology(int devices, Dice& dice) {
  const auto rate = [&] { return BytesPerSecond(dice.Roll(1, 20) * 50'000'000LL); };
  Topology topology = dice.Roll(0, 1) == 0
                          ? UniformTopology(devices, rate(), Nanos(dice.Roll(0, 5)))
                          : NvswitchTopology(devices, rate(), Nanos(dice.Roll(0, 5)));
  std::erase_if(topology.links, [&](const TopologyLink&) { return dice.Roll(0, 4) == 0; });
  for (TopologyLink& link : topology.links) link.rate = rate();
  return WithRandomHost(topology, dice.Roll(1, 9) * 60'000'000LL, dice);
}

// The same problem on two or three servers, each with a topology at random.
inline PlanningProblem OnServers(PlanningProblem problem, Dice& dice) {
  const int workers = WorkerCount(problem.schedule) * problem.schedule.replicas;
  const int servers = dice.Roll(2, 3);
  const Topology server = RandomTopology((workers + servers - 1) / servers, dice);
  const BytesPerSecond rate(dice.Roll(0, 20) * 20'000'000LL);
  problem.topology = SeveralServers(server, servers, {rate, Nanos(dice.Roll(0, 9))});
  return problem;
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

#endif  // SIPHON_TESTS_PLANNER_RANDOM_PROBLEM_H_
