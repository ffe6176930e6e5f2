#include "planner/topology_symmetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kWireRate = 24'200'000'000;

void Link(Topology& topology, int a, int b, int wires) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    topology.links.push_back({.from = DeviceId(from),
                              .to = DeviceId(to),
                              .rate = BytesPerSecond(kWireRate * wires),
                              .latency = Nanos(2000),
                              .wires = wires});
  }
}

// The hybrid cube mesh of DGX-1 with V100, two devices a switch, four a socket.
Topology Dgx1V() {
  Topology topology;
  topology.devices.resize(8);
  for (int device = 4; device < 8; ++device) topology.devices[device].numa = 1;
  constexpr int kWires[16][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                 {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                 {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& [a, b, wires] : kWires) Link(topology, a, b, wires);
  return WithHost(
      std::move(topology), 2,
      {.to_host = BytesPerSecond(11'700'000'000), .from_host = BytesPerSecond(11'700'000'000)});
}

std::vector<int> Numbers(const std::vector<DeviceId>& devices) {
  std::vector<int> numbers;
  for (const DeviceId device : devices) numbers.push_back(device.value);
  return numbers;
}

TEST(TopologySymmetry, OfDgx1VIsFourRenumberingsSoTenThousandAndEightyMaps) {
  const TopologySymmetry symmetry(Dgx1V());
  EXPECT_TRUE(symmetry.exact());
  EXPECT_EQ(symmetry.GroupSize(), 4);
  EXPECT_EQ(symmetry.DistinctMaps(), 10'080);
  std::set<std::vector<int>> generators;
  for (const auto& generator : symmetry.Generators()) generators.insert(Numbers(generator));
  // Within the pairs, and the two halves exchanged; the fourth is both.
  EXPECT_THAT(generators, ElementsAre(std::vector<int>{1, 0, 3, 2, 5, 4, 7, 6},
                                      std::vector<int>{4, 5, 6, 7, 0, 1, 2, 3}));
}

TEST(TopologySymmetry, OffersOneDeviceOfEachFamilyForTheNextStage) {
  const TopologySymmetry symmetry(Dgx1V());
  EXPECT_THAT(Numbers(symmetry.NextDevices({})), ElementsAre(0, 2));
  // With one device in its place nothing moves any more.
  EXPECT_THAT(Numbers(symmetry.NextDevices({DeviceId(2)})), ElementsAre(0, 1, 3, 4, 5, 6, 7));
  EXPECT_THAT(Numbers(symmetry.NextDevices({DeviceId(2), DeviceId(0)})),
              ElementsAre(1, 3, 4, 5, 6, 7));
}

TEST(TopologySymmetry, SeesRatesSizesSwitchesNumaNodesAndDrives) {
  const auto group = [](const Topology& topology) {
    return TopologySymmetry(topology).GroupSize();
  };
  Topology one_slow_link = Dgx1V();
  one_slow_link.links[0].rate = BytesPerSecond(20'000'000'000);  // 0 to 1, one way
  EXPECT_EQ(group(one_slow_link), 1);
  Topology one_smaller_device = Dgx1V();
  one_smaller_device.devices[5].memory = Bytes(16);
  EXPECT_EQ(group(one_smaller_device), 1);
  Topology one_capped_device = Dgx1V();
  one_capped_device.devices[2].egress = BytesPerSecond(1);
  EXPECT_EQ(group(one_capped_device), 1);
  Topology slower_switch = Dgx1V();
  slower_switch.switches[3].to_host_both = BytesPerSecond(9'000'000'000);
  EXPECT_EQ(group(slower_switch), 2);  // only 0-1, 2-3, 4-5, 6-7 are exchanged
  Topology drive_on_one_side = Dgx1V();
  drive_on_one_side.drives.push_back({.capacity = Bytes(1), .numa = 1});
  EXPECT_EQ(group(drive_on_one_side), 2);
  Topology mixed_switches = Dgx1V();
  std::swap(mixed_switches.switches[0].devices[0], mixed_switches.switches[1].devices[0]);
  EXPECT_EQ(group(mixed_switches), 2);  // {2, 1} and {0, 3} become each other within pairs
  Topology three_on_a_switch = Dgx1V();
  three_on_a_switch.switches[0].devices.push_back(DeviceId(2));
  three_on_a_switch.switches[1].devices = {DeviceId(3)};
  EXPECT_EQ(group(three_on_a_switch), 1);
  Topology mixed_numa = Dgx1V();
  mixed_numa.devices[3].numa = 1;
  EXPECT_EQ(group(mixed_numa), 1);
  EXPECT_EQ(TopologySymmetry(mixed_numa, SymmetryScope::kDevicesAndLinks).GroupSize(), 4);
}

TEST(TopologySymmetry, RecognisesSixteenDevicesOnOneFabric) {
  const Topology fabric = NvswitchTopology(16, BytesPerSecond(145'600'000'000), Nanos(2500));
  const TopologySymmetry symmetry(fabric);
  EXPECT_EQ(symmetry.DistinctMaps(), 1);
  EXPECT_EQ(symmetry.GroupSize(), 20'922'789'888'000);  // 16!
  EXPECT_EQ(symmetry.Generators().size(), 15);
  EXPECT_THAT(Numbers(symmetry.NextDevices({DeviceId(0), DeviceId(1)})), ElementsAre(2));
  // In pairs behind switches: pairs are exchanged, and devices within each.
  const Topology paired = WithHost(fabric, 2, {});
  EXPECT_EQ(TopologySymmetry(paired).GroupSize(), 256 * 40'320);  // 2^8 8!
  EXPECT_EQ(TopologySymmetry(paired, SymmetryScope::kDevicesAndLinks).DistinctMaps(), 1);
}

TEST(TopologySymmetry, OfOneDeviceAndOfNoneIsTrivial) {
  const TopologySymmetry one(UniformTopology(1, BytesPerSecond(1), Nanos(0)));
  EXPECT_EQ(one.DistinctMaps(), 1);
  EXPECT_THAT(one.Generators(), IsEmpty());
  EXPECT_EQ(TopologySymmetry(Topology()).DistinctMaps(), 1);
}

TEST(TopologySymmetry, SaysWhenCountsAreBeyondItsNumbers) {
  const TopologySymmetry symmetry(UniformTopology(72, BytesPerSecond(1), Nanos(0)));
  EXPECT_TRUE(symmetry.exact());
  EXPECT_FALSE(symmetry.GroupSize().has_value());
  EXPECT_FALSE(symmetry.DistinctMaps().has_value());
  EXPECT_TRUE(TopologySymmetry(UniformTopology(96, BytesPerSecond(1), Nanos(0))).exact());
}

// Devices of one node take its drives in turn: 0 and 2 the first, 1 and 3 the second.
TEST(TopologySymmetry, SeesWhichDriveEachDeviceUses) {
  const auto group = [](const Topology& topology) {
    return TopologySymmetry(topology).GroupSize();
  };
  Topology topology = UniformTopology(4, BytesPerSecond(9), Nanos(1));
  topology.drives = {{.read = BytesPerSecond(3), .write = BytesPerSecond(2)}};
  EXPECT_EQ(group(topology), 24);
  topology.drives.push_back(topology.drives[0]);
  EXPECT_EQ(group(topology), 8);  // within the pairs, and the pairs exchanged
  EXPECT_EQ(TopologySymmetry(topology).DistinctMaps(), 3);
  topology.drives[1].write = BytesPerSecond(1);
  EXPECT_EQ(group(topology), 4);  // within the pairs
  EXPECT_THAT(Numbers(TopologySymmetry(topology).NextDevices({})), ElementsAre(0, 1));
  EXPECT_EQ(TopologySymmetry(topology, SymmetryScope::kDevicesAndLinks).GroupSize(), 24);
  // Both drives of another node, which all take in turn.
  topology.drives[0].numa = topology.drives[1].numa = 1;
  EXPECT_EQ(group(topology), 4);
  // A drive that nobody uses changes nothing.
  topology.devices.resize(2);
  topology.links = UniformTopology(2, BytesPerSecond(9), Nanos(1)).links;
  topology.drives = {topology.drives[0], topology.drives[0], topology.drives[1]};
  EXPECT_EQ(group(topology), 2);
}

// What a device swaps to: the drive's figures, and whether it is of the device's own node.
auto DriveFacts(const Topology& topology, int device) {
  const NvmeDrive& drive = topology.drives[DriveOf(topology, DeviceId(device))];
  return std::tuple(drive.capacity, drive.read, drive.write, drive.latency,
                    drive.numa == topology.devices[device].numa);
}

// Do devices a and b stand to each other and to their drives as one and other do?
bool KeepsDrives(const Topology& topology, int a, int b, int one, int other) {
  if (topology.drives.empty()) return true;
  const auto share = [&](int device, int neighbour) {
    return DriveOf(topology, DeviceId(device)) == DriveOf(topology, DeviceId(neighbour));
  };
  return DriveFacts(topology, a) == DriveFacts(topology, one) && share(a, b) == share(one, other);
}

// Every renumbering of a few devices, tried out.
int64_t TriedGroupSize(const Topology& topology) {
  const int devices = DeviceCount(topology);
  std::vector<int> image(devices);
  std::iota(image.begin(), image.end(), 0);
  int64_t size = 0;
  do {
    bool keeps = true;
    for (int from = 0; from < devices; ++from) {
      keeps = keeps && topology.devices[from].memory == topology.devices[image[from]].memory;
      for (int to = 0; to < devices; ++to) {
        if (from == to) continue;
        const auto before = FindLink(topology, DeviceId(from), DeviceId(to));
        const auto after = FindLink(topology, DeviceId(image[from]), DeviceId(image[to]));
        keeps = keeps && before.has_value() == after.has_value();
        keeps = keeps && (!before.has_value() || !after.has_value() || before->rate == after->rate);
        const auto distance = [&](int a, int b) {
          return PcieDistanceBetween(topology, DeviceId(a), DeviceId(b));
        };
        keeps = keeps && distance(from, to) == distance(image[from], image[to]);
        const auto same_node = [&](int a, int b) {
          return topology.devices[a].numa == topology.devices[b].numa;
        };
        keeps = keeps && same_node(from, to) == same_node(image[from], image[to]);
        keeps = keeps && KeepsDrives(topology, from, to, image[from], image[to]);
      }
    }
    size += keeps ? 1 : 0;
  } while (std::next_permutation(image.begin(), image.end()));
  return size;
}

int64_t MapsMetBySearch(const TopologySymmetry& symmetry, std::vector<DeviceId>& placed) {
  if (static_cast<int>(placed.size()) == symmetry.devices()) return 1;
  int64_t maps = 0;
  for (const DeviceId device : symmetry.NextDevices(placed)) {
    placed.push_back(device);
    maps += MapsMetBySearch(symmetry, placed);
    placed.pop_back();
  }
  return maps;
}

// One to four drives of two speeds on two nodes, of which most devices have the first.
void AddDrives(Topology& topology, std::mt19937& random) {
  for (TopologyDevice& device : topology.devices) device.numa = random() % 4 == 0 ? 1 : 0;
  topology.drives.resize(1 + random() % 4);
  for (NvmeDrive& drive : topology.drives) {
    drive.read = BytesPerSecond(random() % 4 == 0 ? 2 : 1);
    drive.numa = random() % 3 == 0 ? 1 : 0;
  }
}

TEST(TopologySymmetry, IsWhatTryingEveryRenumberingFinds) {
  std::mt19937 random(7);
  int symmetric = 0;
  for (int round = 0; round < 300; ++round) {
    const int devices = 2 + round % 4;
    Topology topology;
    topology.devices.resize(devices);
    for (TopologyDevice& device : topology.devices) {
      device.memory = Bytes(random() % 8 == 0 ? 2 : 1);
    }
    for (int a = 0; a < devices; ++a) {
      for (int b = 0; b < a; ++b) {
        if (const int wires = static_cast<int>(random() % 3); wires > 0) {
          Link(topology, a, b, wires);
        }
      }
    }
    if (round % 2 == 0) topology = WithHost(std::move(topology), 2, {});
    if (round >= 150) AddDrives(topology, random);
    const TopologySymmetry symmetry(topology);
    ASSERT_TRUE(symmetry.exact());
    const int64_t tried = TriedGroupSize(topology);
    ASSERT_EQ(symmetry.GroupSize(), tried) << "round " << round;
    std::vector<DeviceId> placed;
    ASSERT_EQ(MapsMetBySearch(symmetry, placed), symmetry.DistinctMaps()) << "round " << round;
    symmetric += tried > 1 ? 1 : 0;
  }
  EXPECT_GT(symmetric, 100);
  EXPECT_LT(symmetric, 300);
}

// Those of each server, and any order of the servers.
TEST(TopologySymmetry, OfSeveralServersKeepsThemTogether) {
  const Topology server = UniformTopology(3, BytesPerSecond(9), Nanos(1));
  EXPECT_EQ(TopologySymmetry(server).GroupSize(), 6);
  const Topology three = SeveralServers(server, 3, {BytesPerSecond(2), Nanos(0)});
  EXPECT_EQ(TopologySymmetry(three).GroupSize(), 6 * 6 * 6 * 6);
  // Without links too, as devices of different servers have no way to the host in common.
  Topology alone;
  alone.devices.resize(2);
  EXPECT_EQ(TopologySymmetry(SeveralServers(alone, 2, {})).GroupSize(), 2 * 2 * 2);
}

TEST(TopologySymmetry, GivesUpRatherThanSearchForEver) {
  // Rings of three and of six look alike from each device, and neighbours have distant numbers.
  constexpr int kDevices = 72;
  Topology topology;
  topology.devices.resize(kDevices);
  const auto number = [](int place) { return place * 29 % kDevices; };
  for (int place = 0; place < kDevices; ++place) {
    const int ring = place < kDevices / 2 ? 3 : 6;
    const int next = place % ring == ring - 1 ? place - ring + 1 : place + 1;
    Link(topology, number(place), number(next), 1);
  }
  const TopologySymmetry symmetry(topology);
  EXPECT_FALSE(symmetry.exact());
  ASSERT_FALSE(symmetry.Generators().empty());
  for (const std::vector<DeviceId>& generator : symmetry.Generators()) {
    for (const TopologyLink& link : topology.links) {
      EXPECT_TRUE(FindLink(topology, generator[link.from.value], generator[link.to.value]));
    }
  }
}

TEST(TopologySymmetry, DoesNotDependOnTheNumbersOfDevices) {
  std::mt19937 random(11);
  const Topology original = Dgx1V();
  for (int round = 0; round < 20; ++round) {
    std::vector<int> image(8);
    std::iota(image.begin(), image.end(), 0);
    std::shuffle(image.begin(), image.end(), random);
    Topology renumbered = original;
    for (int device = 0; device < 8; ++device) {
      renumbered.devices[image[device]] = original.devices[device];
    }
    for (TopologyLink& link : renumbered.links) {
      link.from = DeviceId(image[link.from.value]);
      link.to = DeviceId(image[link.to.value]);
    }
    for (PcieSwitch& uplink : renumbered.switches) {
      for (DeviceId& device : uplink.devices) device = DeviceId(image[device.value]);
    }
    EXPECT_EQ(TopologySymmetry(renumbered).DistinctMaps(), 10'080);
  }
}

}  // namespace
}  // namespace siphon
