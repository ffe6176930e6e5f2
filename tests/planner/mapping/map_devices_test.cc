#include "planner/mapping/map_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/status/status.h"
#include "planner/mapping/assign_parking.h"
#include "tests/planner/mapping/every_assignment.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

constexpr int64_t kGiga = 1'000'000'000;

FoundMap Mapped(const Topology& topology, const DeviceMapRequest& request) {
  const auto found = MapDevices(topology, request);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : FoundMap{};
}

// The first half parks as many bytes as the second half lends.
DeviceMapRequest EarlyToLate(int workers, int64_t bytes) {
  DeviceMapRequest request{.neighbours = PipelineNeighbours(workers, 1)};
  for (int worker = 0; worker < workers; ++worker) {
    const bool early = worker < workers / 2;
    request.demand.workers.push_back(
        {early ? Bytes(bytes) : Bytes(0), early ? Bytes(0) : Bytes(bytes)});
  }
  return request;
}

int EarlyToLateWires(const Topology& topology, const std::vector<int>& map) {
  int wires = 0;
  for (int early = 0; early < 4; ++early) {
    for (int late = 4; late < 8; ++late) {
      wires += WiresBetween(topology, DeviceId(map[early]), DeviceId(map[late]));
    }
  }
  return wires;
}

bool NeighboursLinked(const Topology& topology, const std::vector<int>& map) {
  for (size_t worker = 1; worker < map.size(); ++worker) {
    if (WiresBetween(topology, DeviceId(map[worker - 1]), DeviceId(map[worker])) == 0) return false;
  }
  return true;
}

TEST(PipelineNeighbours, StayWithinTheirReplica) {
  EXPECT_THAT(
      PipelineNeighbours(3, 2),
      ElementsAre(Neighbours{WorkerId(0), WorkerId(1)}, Neighbours{WorkerId(1), WorkerId(2)},
                  Neighbours{WorkerId(3), WorkerId(4)}, Neighbours{WorkerId(4), WorkerId(5)}));
  EXPECT_TRUE(PipelineNeighbours(1, 4).empty());
}

// A row of devices 0 - 1 - 2 with 1 wire, then 2. Worker 0 parks, worker 2 lends.
TEST(MapDevices, PutsTheLenderBesideTheOwnerByHand) {
  Topology row;
  row.devices.resize(3);
  Link(row, 0, 1, 1, kGiga);
  Link(row, 1, 2, 2, kGiga);
  DeviceMapRequest request{.demand = {{{Bytes(100), Bytes(0)}, {}, {Bytes(0), Bytes(100)}}},
                           .neighbours = PipelineNeighbours(3, 1)};
  const FoundMap found = Mapped(row, request);
  // Workers 0 and 2 need the two wires; worker 1 is then on device 0, beside device 1.
  EXPECT_EQ(Numbers(found.mapping), (std::vector<int>{1, 0, 2}));
  EXPECT_EQ(found.cost, (MapCost{Bytes(0), Nanos(50), 1, 1}));
  EXPECT_TRUE(found.proven);
}

TEST(MapDevices, OfOneWorkerAndOfNoneIsTrivial) {
  EXPECT_EQ(Mapped(Dgx1V(), {}).mapping, DeviceMapping());
  const FoundMap one = Mapped(Dgx1V(), {.demand = {{{Bytes(5), Bytes(0)}}}});
  EXPECT_EQ(Numbers(one.mapping), (std::vector<int>{0}));
  EXPECT_EQ(one.cost.missing, Bytes(5));
  EXPECT_TRUE(one.proven);
}

TEST(MapDevices, RefusesNeighboursThatAreNoWorkers) {
  EXPECT_EQ(
      MapDevices(Dgx1V(), {.demand = {{{}, {}}}, .neighbours = PipelineNeighbours(3, 1)}).status(),
      absl::InvalidArgumentError("neighbours 1 and 2: workers are 0 to 1"));
  EXPECT_EQ(MapDevices(Dgx1V(), EarlyToLate(10, 1)).status(),
            absl::InvalidArgumentError("10 workers need as many devices; the topology has 8"));
}

// Exact facts of the wires of DGX-1V, from all of its 40,320 maps.
TEST(MapDevices, Dgx1VHasTheMapsThatItsWiresAllow) {
  const Topology topology = Dgx1V();
  int linked = 0;
  int linked_with_sixteen = 0;
  int most_linked = 0;
  int most = 0;
  int with_most = 0;
  std::vector<std::vector<int>> wires(8, std::vector<int>(8));
  for (const TopologyLink& link : topology.links) {
    wires[link.from.value][link.to.value] = link.wires;
  }
  std::vector<int> map = Numbers(IdentityMapping(8));
  EXPECT_EQ(EarlyToLateWires(topology, map), 6);
  EXPECT_EQ(wires[3][4], 0);
  for (int x = 0; x < 4; ++x) EXPECT_EQ(wires[x][7 - x], 0);
  do {
    int early_to_late = 0;
    for (int early = 0; early < 4; ++early) {
      for (int late = 4; late < 8; ++late) early_to_late += wires[map[early]][map[late]];
    }
    with_most = early_to_late > most ? 1 : with_most + (early_to_late == most ? 1 : 0);
    most = std::max(most, early_to_late);
    bool all_linked = true;
    for (int worker = 1; worker < 8; ++worker) {
      all_linked = all_linked && wires[map[worker - 1]][map[worker]] > 0;
    }
    if (!all_linked) continue;
    ++linked;
    linked_with_sixteen += early_to_late == 16 ? 1 : 0;
    most_linked = std::max(most_linked, early_to_late);
  } while (std::next_permutation(map.begin(), map.end()));
  EXPECT_EQ(linked, 816);
  EXPECT_EQ(most_linked, 16);
  EXPECT_EQ(linked_with_sixteen, 48);
  EXPECT_EQ(most, 20);
  EXPECT_EQ(with_most, 1152);
  const std::vector<int> pairs = {7, 6, 2, 3, 0, 1, 5, 4};
  for (int x = 0; x < 4; ++x) EXPECT_EQ(wires[pairs[x]][pairs[7 - x]], 2);
  EXPECT_TRUE(NeighboursLinked(topology, pairs));
  EXPECT_EQ(EarlyToLateWires(topology, pairs), 12);
  EXPECT_TRUE(NeighboursLinked(topology, {0, 1, 5, 7, 3, 2, 6, 4}));
  EXPECT_EQ(EarlyToLateWires(topology, {0, 1, 5, 7, 3, 2, 6, 4}), 16);
}

// Four owners with room enough at any one lender: five wires each is the best that DGX-1V has.
TEST(MapDevices, GivesEveryOwnerOfDgx1VFiveWires) {
  const Topology topology = Dgx1V();
  DeviceMapRequest request = EarlyToLate(8, kGiga);
  for (ParkingNeed& worker : request.demand.workers) worker.lendable = worker.lendable * 4;
  const FoundMap found = Mapped(topology, request);
  EXPECT_TRUE(found.proven);
  EXPECT_EQ(found.cost.missing, Bytes(0));
  EXPECT_EQ(found.cost.time, Nanos(8'264'463));  // 1 GB at 5 x 24.2 GB/s
  EXPECT_EQ(EarlyToLateWires(topology, Numbers(found.mapping)), 20);
  const auto assignment = AssignParking(topology, found.mapping, request.demand, Bytes(64));
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_NEAR(static_cast<double>(assignment->time.value), 8'264'463, 10);
}

// Stage x parks as much as stage 7 - x lends, less and less: as in 1F1B with equal stages.
TEST(MapDevices, ProvesTheBestMapOfDgx1VForAPipelinesDemand) {
  const Topology topology = Dgx1V();
  DeviceMapRequest request{.neighbours = PipelineNeighbours(8, 1)};
  for (int worker = 0; worker < 8; ++worker) {
    const Bytes bytes(kGiga * (worker < 4 ? 7 - 2 * worker : 2 * worker - 7));
    request.demand.workers.push_back(
        {worker < 4 ? bytes : Bytes(0), worker < 4 ? Bytes(0) : bytes});
  }
  const FoundMap found = Mapped(topology, request);
  EXPECT_TRUE(found.proven);
  // The same by trying all maps.
  const SwapFabric fabric = MakeSwapFabric(topology);
  const NeighbourLinks links(fabric, request.neighbours);
  std::optional<std::pair<MapCost, std::vector<int>>> best;
  std::vector<int> map = Numbers(IdentityMapping(8));
  int round = 0;
  do {
    if (++round % 37 != 0 && map != Numbers(found.mapping)) continue;  // to be quick
    const ParkingTime parking = LeastParkingTime(fabric, MapOf(map), request.demand);
    MapCost cost{parking.unparked, parking.time};
    links.Fill(MapOf(map).device_of_worker, cost);
    const std::pair tried{cost, map};
    if (!best || tried < *best) best = tried;
  } while (std::next_permutation(map.begin(), map.end()));
  EXPECT_EQ(best->first, found.cost);
  EXPECT_EQ(best->second, Numbers(found.mapping));
}

TEST(MapDevices, SeesAtOnceThatAllMapsOntoASwitchAreAlike) {
  Topology topology = NvswitchTopology(16, BytesPerSecond(275 * kGiga), Nanos(2000));
  topology = WithHost(std::move(topology), 2, {.to_host = BytesPerSecond(25 * kGiga)});
  const FoundMap found = Mapped(topology, EarlyToLate(16, kGiga));
  EXPECT_TRUE(found.proven);
  EXPECT_EQ(found.mapping, IdentityMapping(16));
  EXPECT_EQ(found.evaluations, 1);
  EXPECT_EQ(found.cost.time, Nanos(3'636'364));  // 1 GB at 275 GB/s, however it is striped
}

TEST(MapDevices, SaysHowGoodItsMapIsOnAMeshThatIsTooLarge) {
  std::mt19937 random(41);
  Topology topology = RandomMesh(16, 1, 24'200'000'000, random);
  for (TopologyDevice& device : topology.devices) device = {};  // no caps
  DeviceMapRequest request = EarlyToLate(16, kGiga);
  request.most_parts = 500;
  const FoundMap found = Mapped(topology, request);
  EXPECT_FALSE(found.proven);
  EXPECT_LE(found.parts, 516);
  EXPECT_LE(found.bound, found.cost);
  EXPECT_GT(found.bound.time, Nanos(0));
  EXPECT_EQ(found.cost.missing, Bytes(0));
  const ParkingTime identity =
      LeastParkingTime(MakeSwapFabric(topology), IdentityMapping(16), request.demand);
  EXPECT_LT(found.cost.time, identity.time);
}

// MPress, figure 6: all maps, each with all ways to hand out bytes.
TEST(MapDevices, ScoresAsHighAsTryingEverything) {
  std::mt19937 random(43);
  for (int round = 0; round < 24; ++round) {
    const int devices = round % 12 == 0 ? 6 : 4 + round % 2;
    const Topology topology = RandomMesh(devices, 2, 1'000'000 * (1 + random() % 900), random);
    const int workers = devices - static_cast<int>(random() % 2);
    const ParkingDemand demand = RandomDemand(workers, devices == 6 ? 2 : 4, random);
    std::optional<ParkingTime> best;
    std::vector<int> all = Numbers(IdentityMapping(devices));
    do {
      if (workers < devices &&
          all[workers] != *std::max_element(all.begin() + workers, all.end())) {
        continue;
      }
      const ParkingTime tried =
          EveryAssignment(topology, {all.begin(), all.begin() + workers}, demand).Best();
      if (!best || tried < *best) best = tried;
    } while (std::next_permutation(all.begin(), all.end()));
    const FoundMap found = Mapped(topology, {.demand = demand});
    EXPECT_TRUE(found.proven);
    EXPECT_EQ((ParkingTime{found.cost.missing, found.cost.time}), *best) << "round " << round;
  }
}

// Every map, its ties and its order, with the assignment of each by flow.
TEST(MapDevices, FindsTheFirstOfTheBestMaps) {
  std::mt19937 random(47);
  for (int round = 0; round < 24; ++round) {
    const int devices = round % 8 == 0 ? 6 : 3 + round % 3;
    Topology topology = RandomMesh(devices, 2, kGiga, random);
    if (round % 4 == 0) topology.copy_engines = CopyEngines::kOneForAllPeers;
    for (TopologyDevice& device : topology.devices) device.memory = Bytes(random() % 2 * 20);
    const int workers = devices - static_cast<int>(random() % 2);
    DeviceMapRequest request{.demand = RandomDemand(workers, 100, random),
                             .neighbours = PipelineNeighbours(workers, 1)};
    const SwapFabric fabric = MakeSwapFabric(topology);
    const NeighbourLinks links(fabric, request.neighbours);
    std::optional<std::pair<MapCost, std::vector<int>>> best;
    std::vector<int> all = Numbers(IdentityMapping(devices));
    do {
      const std::vector<int> map(all.begin(), all.begin() + workers);
      const ParkingTime parking = LeastParkingTime(fabric, MapOf(map), request.demand);
      MapCost cost{parking.unparked, parking.time};
      links.Fill(MapOf(map).device_of_worker, cost);
      const std::pair tried{cost, map};
      if (!best || tried < *best) best = tried;
    } while (std::next_permutation(all.begin(), all.end()));
    const FoundMap found = Mapped(topology, request);
    EXPECT_TRUE(found.proven);
    EXPECT_EQ(std::pair(found.cost, Numbers(found.mapping)), *best) << "round " << round;
  }
}

TEST(MapDevices, ScoresTheSameWhateverTheNumbersOfDevices) {
  std::mt19937 random(53);
  for (int round = 0; round < 3; ++round) {
    const Topology topology = round == 0 ? Dgx1V() : RandomMesh(6, 2, 24'200'000'000, random);
    const int devices = DeviceCount(topology);
    const DeviceMapRequest request{.demand = RandomDemand(devices, kGiga, random),
                                   .neighbours = PipelineNeighbours(devices, 1)};
    const FoundMap one = Mapped(topology, request);
    const FoundMap other = Mapped(Renumbered(topology, Shuffled(devices, random)), request);
    EXPECT_TRUE(one.proven);
    EXPECT_TRUE(other.proven);
    EXPECT_EQ(one.cost, other.cost) << "round " << round;
  }
}

}  // namespace
}  // namespace siphon
