#include "planner/mapping/search_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "absl/status/status.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

MapCost Time(int64_t nanos) { return {.time = Nanos(nanos)}; }
MapCost NoBound(absl::Span<const DeviceId>, const MapCost& before) { return before; }

TEST(MapCost, CountsRoomThenTimeThenLinksThenWires) {
  EXPECT_LT((MapCost{Bytes(0), Nanos(9), 9, 0}), (MapCost{Bytes(1), Nanos(0), 0, 9}));
  EXPECT_LT((MapCost{Bytes(0), Nanos(1), 9, 0}), (MapCost{Bytes(0), Nanos(2), 0, 9}));
  EXPECT_LT((MapCost{Bytes(0), Nanos(1), 0, 0}), (MapCost{Bytes(0), Nanos(1), 1, 9}));
  EXPECT_LT((MapCost{Bytes(0), Nanos(1), 0, 3}), (MapCost{Bytes(0), Nanos(1), 0, 2}));
}

// Worker w on device d takes kTimes[w][d]; the whole takes their sum.
constexpr int64_t kTimes[3][3] = {{5, 1, 3}, {4, 2, 9}, {8, 3, 2}};

TEST(SearchMaps, FindsTheCheapestAssignmentByHand) {
  // Devices that differ, so that nothing is symmetric.
  Topology topology;
  for (int device = 0; device < 3; ++device) topology.devices.push_back({.memory = Bytes(device)});
  const auto cost = [](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
    int64_t sum = 0;
    for (int worker = 0; worker < 3; ++worker) {
      sum += kTimes[worker][mapping.device_of_worker[worker].value];
    }
    return Time(sum);
  };
  const auto bound = [](absl::Span<const DeviceId> placed, const MapCost&) {
    int64_t sum = 0;
    for (size_t worker = 0; worker < placed.size(); ++worker) {
      sum += kTimes[worker][placed[worker].value];
    }
    return Time(sum);
  };
  const auto found = SearchMaps(topology, {.workers = 3}, cost, bound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Numbers(found->mapping), (std::vector<int>{1, 0, 2}));  // 1 + 4 + 2
  EXPECT_EQ(found->cost, Time(7));
  EXPECT_EQ(found->bound, Time(7));
  EXPECT_TRUE(found->proven);
}

// The time of a map is how far its workers' devices are from 3, 2, 1, 0.
absl::StatusOr<MapCost> DistanceFromReverse(const DeviceMapping& mapping) {
  int64_t distance = 0;
  for (int worker = 0; worker < 4; ++worker) {
    distance += std::abs(mapping.device_of_worker[worker].value - (3 - worker));
  }
  return Time(distance);
}

TEST(SearchMaps, BeginsWithTheSeeds) {
  Topology topology;
  for (int device = 0; device < 4; ++device) topology.devices.push_back({.memory = Bytes(device)});
  MapSearch search{.workers = 4, .most_evaluations = 3};
  const auto without = SearchMaps(topology, search, DistanceFromReverse, NoBound);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_GT(without->cost, Time(0));
  search.seeds = {{{DeviceId(3), DeviceId(2), DeviceId(1), DeviceId(0)}}};
  const auto with = SearchMaps(topology, search, DistanceFromReverse, NoBound);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->cost, Time(0));
  EXPECT_EQ(Numbers(with->mapping), (std::vector<int>{3, 2, 1, 0}));
  search.seeds = {{{DeviceId(3), DeviceId(3), DeviceId(1), DeviceId(0)}}};
  EXPECT_TRUE(
      absl::IsInvalidArgument(SearchMaps(topology, search, DistanceFromReverse, NoBound).status()));
}

TEST(SearchMaps, AsksOnceWhereAllDevicesAreAlike) {
  int asked = 0;
  const auto cost = [&](const DeviceMapping&) -> absl::StatusOr<MapCost> {
    ++asked;
    return Time(42);
  };
  const Topology fabric = NvswitchTopology(16, BytesPerSecond(1000), Nanos(0));
  const auto found = SearchMaps(fabric, {.workers = 16}, cost, NoBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(found->mapping, IdentityMapping(16));
  EXPECT_TRUE(found->proven);
  EXPECT_EQ(found->parts, 16);
  const MapSearch at_once{.workers = 16, .at_once = 2};
  // The last worker has no choice.
  EXPECT_EQ(SearchMaps(fabric, at_once, cost, NoBound)->parts, 15);
}

// All links are alike, but the devices of the node take its drives in turn, and worker 0 swaps to
// its: only on device 1 that is the fast one.
TEST(SearchMaps, MeetsTheDevicesOfEachDrive) {
  Topology topology = UniformTopology(3, BytesPerSecond(1000), Nanos(0));
  topology.drives = {{.write = BytesPerSecond(1)}, {.write = BytesPerSecond(4)}};
  const auto cost = [&](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
    const int drive = DriveOf(topology, mapping.device_of_worker[0]);
    return Time(100 / topology.drives[drive].write.value);
  };
  const auto found = SearchMaps(topology, {.workers = 3}, cost, NoBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->cost, Time(25));
  EXPECT_EQ(Numbers(found->mapping), (std::vector<int>{1, 0, 2}));
  EXPECT_TRUE(found->proven);
}

// No bound rules anything out, so every leaf is asked; after the first, exchanges of two are tried.
TEST(SearchMaps, MeetsOneMapOfEachFamily) {
  const auto cost = [](const DeviceMapping&) -> absl::StatusOr<MapCost> { return Time(5); };
  const auto found = SearchMaps(Dgx1V(), {.workers = 8}, cost, NoBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->proven);
  EXPECT_EQ(found->mapping, IdentityMapping(8));
  EXPECT_EQ(found->evaluations, 10'080 + 8 * 7 / 2);
}

TEST(SearchMaps, OfNoWorkersIsTheEmptyMap) {
  const auto cost = [](const DeviceMapping&) -> absl::StatusOr<MapCost> { return Time(3); };
  const auto found = SearchMaps(Topology(), {}, cost, NoBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->cost, Time(3));
  EXPECT_TRUE(found->proven);
}

TEST(SearchMaps, FailsAsItsCostsDoAndWithoutDevicesEnough) {
  const auto cost = [](const DeviceMapping&) -> absl::StatusOr<MapCost> {
    return absl::InternalError("no simulation today");
  };
  EXPECT_EQ(SearchMaps(Dgx1V(), {.workers = 2}, cost, NoBound).status(),
            absl::InternalError("no simulation today"));
  EXPECT_EQ(SearchMaps(Dgx1V(), {.workers = 9}, cost, NoBound).status(),
            absl::InvalidArgumentError("9 workers need as many devices; the topology has 8"));
}

// A cost that only the map as a whole has, with a bound of random quality.
TEST(SearchMaps, FindsTheFirstOfTheCheapestMapsWhateverTheBound) {
  std::mt19937 random(37);
  for (int round = 0; round < 60; ++round) {
    const int devices = 2 + round % 5;
    const int workers = devices - static_cast<int>(random() % 2);
    Topology topology;
    for (int device = 0; device < devices; ++device) {
      topology.devices.push_back({.memory = Bytes(device)});
    }
    std::vector<std::vector<int64_t>> times(workers, std::vector<int64_t>(devices));
    for (auto& row : times) {
      for (int64_t& time : row) time = static_cast<int64_t>(random() % 4);
    }
    const auto sum = [&](absl::Span<const DeviceId> placed) {
      int64_t all = 0;
      for (size_t worker = 0; worker < placed.size(); ++worker) {
        all += times[worker][placed[worker].value];
      }
      return all;
    };
    const int64_t share = static_cast<int64_t>(random() % 3);
    const auto bound = [&](absl::Span<const DeviceId> placed, const MapCost&) {
      return Time(sum(placed) * share / 2);
    };
    std::optional<std::pair<MapCost, std::vector<int>>> best;
    const auto cost = [&](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
      return Time(sum(mapping.device_of_worker));
    };
    std::vector<int> all = Numbers(IdentityMapping(devices));
    do {
      const std::vector<int> map(all.begin(), all.begin() + workers);
      const std::pair tried{*cost(MapOf(map)), map};
      if (!best || tried < *best) best = tried;
    } while (std::next_permutation(all.begin(), all.end()));
    for (const int at_once : {1, 2, 5, 1000}) {
      const MapSearch search{.workers = workers, .at_once = at_once};
      const auto found = SearchMaps(topology, search, cost, bound);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(std::pair(found->cost, Numbers(found->mapping)), *best)
          << "round " << round << ", " << at_once << " at once";
      EXPECT_TRUE(found->proven);
      EXPECT_EQ(found->bound, found->cost);
    }
  }
}

TEST(SearchMaps, SaysHowGoodAMapIsWhenALimitEndsTheSearch) {
  Topology topology;
  for (int device = 0; device < 9; ++device) topology.devices.push_back({.memory = Bytes(device)});
  const auto cost = [](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
    int64_t sum = 1000;
    for (int worker = 0; worker < 9; ++worker) {
      sum += (mapping.device_of_worker[worker].value * 7 + worker * 5) % 9 * worker;
    }
    return Time(sum);
  };
  const auto bound = [](absl::Span<const DeviceId>, const MapCost&) { return Time(999); };
  const MapSearch few{.workers = 9, .most_parts = 500};
  const auto found = SearchMaps(topology, few, cost, bound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->proven);
  EXPECT_EQ(found->bound, Time(999));
  EXPECT_GT(found->cost, found->bound);
  EXPECT_GE(found->parts, 500);
  EXPECT_LE(found->parts, 509);
  const MapSearch one{.workers = 9, .most_evaluations = 1};
  const auto first = SearchMaps(topology, one, cost, bound);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->evaluations, 1);
  EXPECT_GE(first->cost, found->cost);
}

// Sums of a worker's device, which no bound says anything about; notes how much it is asked at
// once.
class NotedCosts : public MapCosts {
 public:
  absl::StatusOr<std::vector<MapCost>> Exact(absl::Span<const DeviceMapping> maps) override {
    most_maps = std::max(most_maps, maps.size());
    std::vector<MapCost> costs;
    for (const DeviceMapping& map : maps) {
      int64_t sum = 0;
      for (size_t worker = 0; worker < map.device_of_worker.size(); ++worker) {
        sum += static_cast<int64_t>(worker * worker) * map.device_of_worker[worker].value;
      }
      costs.push_back(Time(sum));
    }
    return costs;
  }
  std::vector<MapCost> Bounds(absl::Span<const PlacedWorkers> placed) override {
    most_bounds = std::max(most_bounds, placed.size());
    std::vector<MapCost> bounds;
    for (const PlacedWorkers& part : placed) bounds.push_back(part.before);
    return bounds;
  }
  size_t most_maps = 0;
  size_t most_bounds = 0;
};

TEST(SearchMaps, AsksForAsManyAtOnceAsItMay) {
  Topology topology;
  for (int device = 0; device < 6; ++device) topology.devices.push_back({.memory = Bytes(device)});
  MapSearch search{.workers = 6, .at_once = 50};
  NotedCosts costs;
  const auto found = SearchMaps(topology, search, costs);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Numbers(found->mapping), (std::vector<int>{5, 4, 3, 2, 1, 0}));
  EXPECT_TRUE(found->proven);
  EXPECT_EQ(costs.most_maps, 50);
  EXPECT_GT(costs.most_bounds, 50);
  EXPECT_LE(costs.most_bounds, 50 * 6);
  search.most_evaluations = 70;
  const auto limited = SearchMaps(topology, search, costs);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(limited->evaluations, 70);
}

// Best first never comes to a whole map of 16, so exchanges get all the evaluations there are.
TEST(SearchMaps, SpendsWhatIsLeftOnExchanges) {
  Topology topology;
  for (int device = 0; device < 16; ++device) topology.devices.push_back({.memory = Bytes(device)});
  const auto cost = [](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
    int64_t distance = 0;
    for (int worker = 0; worker < 16; ++worker) {
      distance += std::abs(mapping.device_of_worker[worker].value - (15 - worker));
    }
    return Time(distance);
  };
  const MapSearch search{.workers = 16, .most_parts = 300, .most_evaluations = 40};
  const auto found = SearchMaps(topology, search, cost, NoBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->evaluations, 40);
  EXPECT_FALSE(found->proven);
  const MapSearch half{.workers = 16, .most_parts = 300, .most_evaluations = 20};
  EXPECT_LT(found->cost, SearchMaps(topology, half, cost, NoBound)->cost);
}

// The most wires from workers 0 to 3 to workers 4 to 7 with every neighbouring pair linked.
TEST(SearchMaps, FindsSixteenWiresFromEarlyToLateOnDgx1V) {
  const Topology topology = Dgx1V();
  const auto wires = [&](DeviceId a, DeviceId b) { return WiresBetween(topology, a, b); };
  const auto cost_of = [&](absl::Span<const DeviceId> placed) {
    MapCost cost{.wires = 0};
    for (size_t late = 4; late < placed.size(); ++late) {
      for (size_t early = 0; early < 4; ++early) cost.wires += wires(placed[early], placed[late]);
    }
    for (size_t worker = 1; worker < placed.size(); ++worker) {
      cost.unlinked += wires(placed[worker - 1], placed[worker]) == 0 ? 1 : 0;
    }
    return cost;
  };
  const auto cost = [&](const DeviceMapping& mapping) -> absl::StatusOr<MapCost> {
    return cost_of(mapping.device_of_worker);
  };
  const auto bound = [&](absl::Span<const DeviceId> placed, const MapCost&) {
    MapCost least = cost_of(placed);
    least.wires += 6 * (8 - static_cast<int>(std::max<size_t>(4, placed.size())));
    return least;
  };
  const auto found = SearchMaps(topology, {.workers = 8}, cost, bound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->proven);
  EXPECT_EQ(found->cost, (MapCost{.unlinked = 0, .wires = 16}));
  EXPECT_EQ(cost_of(MapOf({0, 1, 5, 7, 3, 2, 6, 4}).device_of_worker), found->cost);
  EXPECT_THAT(Numbers(found->mapping), ElementsAre(0, 1, 5, 7, 3, 2, 6, 4));
}

}  // namespace
}  // namespace siphon
