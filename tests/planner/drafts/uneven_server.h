#ifndef SIPHON_TESTS_PLANNER_DRAFTS_UNEVEN_SERVER_H_
#define SIPHON_TESTS_PLANNER_DRAFTS_UNEVEN_SERVER_H_

#include <cstdint>
#include <random>
#include <utility>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/planning_problem.h"
#include "planner/topology.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {

// Devices with links of 50 to 1000 MB/s and uplinks as different, each with two devices.
inline Topology UnevenServer(uint32_t seed, int devices = 4) {
  std::minstd_rand random(seed);
  const auto rate = [&random] { return BytesPerSecond(int64_t{50'000'000} * (1 + random() % 20)); };
  Topology topology = UniformTopology(devices, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) {
    link.wires = 1;
    link.rate = rate();
  }
  topology = WithHost(topology, 2, {.to_host = kByteANano, .from_host = kByteANano});
  for (PcieSwitch& uplink : topology.switches) uplink.to_host = uplink.from_host = rate();
  return topology;
}

// Three workers with two layers each, whose messages take as long as their layers.
inline PlanningProblem ThreeWorkers(Topology topology) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .boundary = Bytes(400),
                                       .saved = {{"all", Bytes(1000)}}},
                                      6, LoweredSchedule("1f1b", 3, 4), std::move(topology));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(8'000));
  return problem;
}

// Worker 0 swaps to the host, worker 1 recomputes a layer and gives one to lenders.
inline DraftPlan MixedDraft(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations.assign(2, Placement::kHostSwap);
  draft.stages[1].activations = {Placement::kPeerSwap, Placement::kRecompute};
  return draft;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_DRAFTS_UNEVEN_SERVER_H_
