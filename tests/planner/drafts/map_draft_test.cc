#include "planner/drafts/maps/map_draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "planner/drafts/search_effort.h"
#include "planner/mapping/assign_parking.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/drafts/uneven_server.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

constexpr MapEffort kEveryMap = {.maps = 1'000, .parts = 20'000};

DraftScore LeastScore(DraftSimulator& simulator, DraftPlan draft) {
  std::vector<DraftScore> scores;
  for (const DeviceMapping& map : EveryMap(3, 4)) {
    draft.mapping = map;
    const auto simulated = simulator.Run(draft);
    EXPECT_TRUE(simulated.ok()) << simulated.status();
    if (simulated.ok()) scores.push_back(simulated->score);
  }
  return *std::min_element(scores.begin(), scores.end());
}

// With few simulations the map may not be the best one, but it is never worse than the first, and
// no map beats the bound.
TEST(MapByStepTime, FindsWhatTryingEveryMapFindsAndBoundsItWhereItStopsEarly) {
  for (const uint32_t seed : {1, 2}) {
    const PlanningProblem problem = ThreeWorkers(UnevenServer(seed));
    DraftSimulator simulator(problem);
    const SimulatedDraft first = simulator.Run(MixedDraft(problem)).value();
    const DraftScore least = LeastScore(simulator, first.draft);
    const auto best = MapByStepTime(simulator, first, kEveryMap);
    ASSERT_TRUE(best.ok()) << best.status();
    EXPECT_EQ(best->draft.score, least) << seed;
    ASSERT_TRUE(best->found.has_value());
    EXPECT_TRUE(best->found->proven);
    EXPECT_EQ(best->found->cost.time, least.step);
    EXPECT_EQ(best->found->cost.missing, least.excess);
    const MapProof proof = ProofOf(MappingScore::kStepTime, *best->found);
    EXPECT_TRUE(proof.proven);
    EXPECT_EQ(proof.time, least.step);
    EXPECT_EQ(proof.least_time, least.step);
    EXPECT_EQ(proof.evaluated, best->found->evaluations);
    for (const int64_t most : {1, 5}) {
      const auto mapped = MapByStepTime(simulator, first, {.maps = most, .parts = kEveryMap.parts});
      ASSERT_TRUE(mapped.ok()) << mapped.status();
      EXPECT_LE(mapped->draft.score, first.score);
      EXPECT_LE(mapped->found->bound.missing, least.excess);
      EXPECT_LE(mapped->found->bound.time, least.step);
      // Four microbatches of two layers.
      EXPECT_GE(mapped->found->bound.time, Nanos(4 * 2 * 3000));
    }
  }
}

// 16 devices that random links join, no two of them alike: what is looked at is limited, whatever
// it finds, and a bound comes with it.
TEST(MapByStepTime, EndsWithABoundOnAMeshOfSixteen) {
  std::mt19937 random(1);
  Topology mesh = RandomMesh(16, 2, 50'000'000, random);
  mesh = WithHost(std::move(mesh), 2, {.to_host = kByteANano, .from_host = kByteANano});
  for (PcieSwitch& uplink : mesh.switches) {
    uplink.to_host = uplink.from_host = BytesPerSecond(int64_t{100'000'000} * (1 + random() % 9));
  }
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .boundary = Bytes(10),
                                       .saved = {{"all", Bytes(1000)}}},
                                      16, LoweredSchedule("1f1b", 16, 32), std::move(mesh));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(12'000));
  DraftSimulator simulator(problem);
  const SimulatedDraft first = DraftHostSwap(simulator).value();
  ASSERT_TRUE(Fits(first));
  const int before = simulator.simulations();
  constexpr int64_t kMaps = 60;
  const int64_t parts = MapsFor(problem).parts;
  const MappedDraft mapped =
      MapByStepTime(simulator, first, {.maps = kMaps, .parts = parts}).value();
  ASSERT_TRUE(mapped.found.has_value());
  EXPECT_LT(mapped.draft.score, first.score);
  EXPECT_LE(mapped.found->evaluations, kMaps);
  EXPECT_LE(simulator.simulations() - before, 2 * kMaps);
  EXPECT_LE(mapped.found->parts, parts + 2 * kMaps * 16);
  const MapProof proof = ProofOf(MappingScore::kStepTime, *mapped.found);
  EXPECT_EQ(proof.time, mapped.draft.score.step);
  EXPECT_LE(proof.least_time, proof.time);
  EXPECT_LE(LeastStepOfMaps(problem, first).value(), proof.least_time);
  ASSERT_TRUE(GapOf(proof).has_value());
  EXPECT_LT(*GapOf(proof), 0.5);
}

// Of a server with no more maps than a DGX-1; what takes long for one map gets no more of them.
TEST(MapsToProve, IsEnoughForAllMapsOfAServer) {
  const LayerProfile layer{.forward = Nanos(1000), .saved = {{"all", Bytes(1000)}}};
  const PlanningProblem on_dgx1 = ProblemOf(layer, 8, LoweredSchedule("1f1b", 8, 16), Dgx1V());
  EXPECT_GT(MapsToProve(on_dgx1).maps, 10'080);
  EXPECT_GT(MapsToProve(on_dgx1).parts, 2 * 10'080);
  const PlanningProblem on_mesh = [&] {
    std::mt19937 random(1);
    return ProblemOf(layer, 16, LoweredSchedule("1f1b", 16, 32),
                     RandomMesh(16, 2, 50'000'000, random));
  }();
  EXPECT_EQ(MapsToProve(on_mesh).maps, MapsFor(on_mesh).maps);
  PlanningProblem large = on_dgx1;
  large.schedule = LoweredSchedule("1f1b", 8, 1024);
  ASSERT_TRUE(IsLarge(large));
  EXPECT_EQ(MapsToProve(large).maps, MapsFor(large).maps);
  EXPECT_EQ(MapsToProve(large).parts, MapsFor(large).parts);
}

// One that differs from a better map only in how neighbours are linked is no worse for a reader.
TEST(ProofOf, IsAboutRoomAndTime) {
  FoundMap found{.cost = {.missing = Bytes(1), .time = Nanos(7), .unlinked = 2},
                 .bound = {.missing = Bytes(1), .time = Nanos(7), .unlinked = 1}};
  EXPECT_TRUE(ProofOf(MappingScore::kStepTime, found).proven);
  found.bound.time = Nanos(6);
  EXPECT_FALSE(ProofOf(MappingScore::kStepTime, found).proven);
  found.bound = {.missing = Bytes(0), .time = Nanos(7)};
  EXPECT_FALSE(ProofOf(MappingScore::kStepTime, found).proven);
  found.proven = true;
  EXPECT_TRUE(ProofOf(MappingScore::kSwapTime, found).proven);
}

// Every map with its best assignment of what keeping everything has too much.
TEST(PeerSwap, SaysThatNoMapReachesLendersFaster) {
  for (uint32_t seed = 0; seed < 5; ++seed) {
    PlanningProblem problem = ThreeWorkers(UnevenServer(seed));
    SetCapacity(problem, Bytes(6'600));
    PlanningProblem unlimited = problem;
    unlimited.capacity.clear();
    const auto kept = FindMemoryStrategy("keep")->plan(unlimited);
    ASSERT_TRUE(kept.ok()) << kept.status();
    std::vector<Bytes> peaks;
    for (const MemoryByKind& peak : kept->simulated.peak) peaks.push_back(Total(peak));
    const ParkingDemand demand = PeakParkingDemand(peaks, problem.capacity);
    std::pair<Bytes, Nanos> least{Bytes(int64_t{1} << 60), Nanos(0)};
    for (const DeviceMapping& map : EveryMap(3, 4)) {
      const auto parked = AssignParking(problem.topology, map, demand, Bytes(1));
      ASSERT_TRUE(parked.ok()) << parked.status();
      least = std::min(least, {parked->unparked, parked->time});
    }
    problem.score = MappingScore::kSwapTime;
    const auto planned = FindMemoryStrategy("d2d_swap")->plan(problem);
    ASSERT_TRUE(planned.ok()) << planned.status();
    ASSERT_TRUE(planned->map.has_value());
    EXPECT_EQ(planned->map->score, MappingScore::kSwapTime);
    EXPECT_TRUE(planned->map->proven);
    EXPECT_EQ(std::make_pair(planned->map->missing, planned->map->time), least) << seed;
    const auto there = AssignParking(problem.topology, planned->mapping, demand, Bytes(1));
    EXPECT_EQ(there->time, least.second) << seed;
    problem.mapping = planned->mapping;
    EXPECT_FALSE(FindMemoryStrategy("d2d_swap")->plan(problem)->map.has_value());
  }
}

// Worker 0 needs 5 bytes less of its 40, and parks whole layers of 10 bytes, of two microbatches
// each. Worker 2, which lends only to its own server, has room for that; worker 1, the neighbour,
// for the 5 bytes alone.
TEST(PeerSwap, PutsWorkersTogetherWhereALenderHasRoomForWholeGroups) {
  Topology server = UniformTopology(2, kByteANano, Nanos(0));
  for (TopologyLink& link : server.links) link.wires = 1;
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(1000),
                 .input_backward = Nanos(1000),
                 .weight_backward = Nanos(1000),
                 .saved = {{"all", Bytes(10)}}},
                6, LoweredSchedule("gpipe", 3, 2), SeveralServers(server, 2, {kByteANano}));
  problem.granule = Bytes(1);
  problem.capacity = {Bytes(35), Bytes(46), Bytes(60)};
  const auto planned = PlanPeerSwap(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const std::vector<DeviceId>& devices = planned->mapping.device_of_worker;
  EXPECT_EQ(ServerOf(problem.topology, devices[0]), ServerOf(problem.topology, devices[2]));
  EXPECT_NE(ServerOf(problem.topology, devices[0]), ServerOf(problem.topology, devices[1]));
}

// By default the step counts: never longer than on the map from which lenders are reached fastest.
TEST(PeerSwap, TakesTheMapWithTheShortestStep) {
  int faster = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    PlanningProblem problem = ThreeWorkers(UnevenServer(seed));
    SetCapacity(problem, Bytes(6'600));
    const auto by_step = FindMemoryStrategy("d2d_swap")->plan(problem);
    ASSERT_TRUE(by_step.ok()) << by_step.status();
    ASSERT_TRUE(by_step->map.has_value());
    EXPECT_EQ(by_step->map->score, MappingScore::kStepTime);
    EXPECT_EQ(by_step->map->time, by_step->simulated.step_time);
    problem.score = MappingScore::kSwapTime;
    const auto by_swap = FindMemoryStrategy("d2d_swap")->plan(problem);
    ASSERT_TRUE(by_swap.ok()) << by_swap.status();
    EXPECT_LE(by_step->simulated.step_time, by_swap->simulated.step_time) << seed;
    faster += by_step->simulated.step_time < by_swap->simulated.step_time ? 1 : 0;
    const auto mixed = FindMemoryStrategy("auto")->plan(problem);
    ASSERT_TRUE(mixed.ok()) << mixed.status();
    EXPECT_TRUE(!mixed->map || mixed->map->score == MappingScore::kSwapTime) << seed;
  }
  EXPECT_GT(faster, 0);
}

TEST(MapByStepTime, LeavesOtherScoresAndGivenMapsAlone) {
  PlanningProblem problem = ThreeWorkers(UnevenServer(1));
  problem.score = MappingScore::kSwapTime;
  DraftSimulator by_swap_time(problem);
  const SimulatedDraft first = by_swap_time.Run(MixedDraft(problem)).value();
  const int before = by_swap_time.simulations();
  EXPECT_FALSE(MapByStepTime(by_swap_time, first, kEveryMap).value().found.has_value());
  EXPECT_EQ(by_swap_time.simulations(), before);
  problem.score = MappingScore::kStepTime;
  problem.mapping = DeviceMapping{{DeviceId(3), DeviceId(1), DeviceId(2)}};
  DraftSimulator given(problem);
  const SimulatedDraft there = given.Run(MixedDraft(problem)).value();
  const MappedDraft mapped = MapByStepTime(given, there, kEveryMap).value();
  EXPECT_FALSE(mapped.found.has_value());
  EXPECT_EQ(mapped.draft.draft.mapping, *problem.mapping);
}

}  // namespace
}  // namespace siphon
