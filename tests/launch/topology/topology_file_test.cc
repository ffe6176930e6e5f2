#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/topology/topology_file.h"
#include "launch/topology/topology_keys.h"

namespace siphon {
namespace {

constexpr char kServer[] =
    "name: a server\n"
    "devices: 3\n"
    "device: V100\n"
    "device_memory: 16GiB\n"
    "wires:\n"
    "  - [0, 1, 2]\n"
    "  - [1, 0, 0]\n"
    "  - [2, 0, 0]\n"
    "wire_rate: 24GB/s\n"
    "nominal_wire_rate: 25GB/s\n"
    "latency: 2us\n"
    "links:\n"
    "  - {from: 2, to: 0, rate: 38.3GB/s, latency: 1800ns}\n"
    "  - {from: 1, to: 2, rate: 9GB/s}\n"
    "device_egress: 70GB/s\n"
    "numa_nodes: [[0, 1], [2]]\n"
    "switches:\n"
    "  - {devices: [0, 1], to_host: 12GB/s, from_host: 11GB/s, to_host_both: 9GB/s, latency: 9us}\n"
    "host_memory: 768GB\n"
    "drives:\n"
    "  - {capacity: 6TB, read: 2GB/s, write: 1GB/s, latency: 100us, numa: 1}\n";

TEST(TopologyFile, SaysWhatAServerHas) {
  const auto topology = ParseTopology(kServer, "server.yaml");
  ASSERT_TRUE(topology.ok()) << topology.status();
  const BytesPerSecond egress(70'000'000'000);
  const auto link = [](int from, int to, int64_t rate, int64_t latency, int wires) {
    return TopologyLink{DeviceId(from), DeviceId(to), BytesPerSecond(rate), Nanos(latency), wires};
  };
  Topology expected{
      .name = "a server",
      .device_kind = "V100",
      .devices = {{.memory = Bytes(int64_t{16} << 30), .egress = egress, .numa = 0},
                  {.memory = Bytes(int64_t{16} << 30), .egress = egress, .numa = 0},
                  {.memory = Bytes(int64_t{16} << 30), .egress = egress, .numa = 1}},
      .links = {link(0, 1, 24'000'000'000, 2000, 1), link(0, 2, 48'000'000'000, 2000, 2),
                link(1, 0, 24'000'000'000, 2000, 1), link(1, 2, 9'000'000'000, 2000, 0),
                link(2, 0, 38'300'000'000, 1800, 2)},
      .switches = {{.devices = {DeviceId(0), DeviceId(1)},
                    .to_host = BytesPerSecond(12'000'000'000),
                    .from_host = BytesPerSecond(11'000'000'000),
                    .to_host_both = BytesPerSecond(9'000'000'000),
                    .latency = Nanos(9000)}},
      .nominal_wire_rate = BytesPerSecond(25'000'000'000),
      .host_memory = Bytes(768'000'000'000),
      .drives = {{.capacity = Bytes(6'000'000'000'000),
                  .read = BytesPerSecond(2'000'000'000),
                  .write = BytesPerSecond(1'000'000'000),
                  .latency = Nanos(100'000),
                  .numa = 1}}};
  EXPECT_EQ(*topology, expected);
}

TEST(TopologyFile, GivesEveryPairOfAFabricAllWiresAndCapsDevices) {
  const auto topology = ParseTopology(
      "name: fabric\n"
      "fabric_wires: 6\n"
      "wire_rate: 24GB/s\n"
      "copy_engines: one_for_all_peers\n"
      "devices: 4\n",
      "fabric.yaml");
  ASSERT_TRUE(topology.ok()) << topology.status();
  Topology expected = NvswitchTopology(4, BytesPerSecond(144'000'000'000), Nanos(0));
  expected.name = "fabric";
  for (TopologyLink& link : expected.links) link.wires = 6;
  EXPECT_EQ(*topology, expected);
}

TEST(TopologyFile, OneDeviceIsAServer) {
  const auto topology = ParseTopology("name: one\ndevices: 1\n", "one.yaml");
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(DeviceCount(*topology), 1);
  EXPECT_TRUE(topology->links.empty());
}

// kServer with `from` replaced, which must be there, and the message that follows.
std::string Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kServer, {{from, to}});
  EXPECT_NE(text, kServer) << from;
  const auto topology = ParseTopology(text, "s.yaml");
  EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument) << to;
  return std::string(topology.status().message());
}

TEST(TopologyFile, NamesThePlaceOfWiresThatCannotBe) {
  EXPECT_EQ(Refusal("[2, 0, 0]", "[1, 0, 0]"),
            "s.yaml:8:6: wires: row 2, column 0: is 1, but row 0, column 2 is 2; a wire runs both "
            "ways, so they must be equal (rates that differ by direction go under 'links')");
  EXPECT_EQ(Refusal("[1, 0, 0]", "[1, 3, 0]"),
            "s.yaml:7:9: wires: row 1, column 1: is 3; a device has no wires to itself, write 0");
  EXPECT_EQ(Refusal("[1, 0, 0]", "[1, 0]"),
            "s.yaml:7:5: wires: row 1 has 2 numbers for 3 devices; write one for each");
  EXPECT_EQ(Refusal("  - [1, 0, 0]\n", ""),
            "s.yaml:6:3: wires: has 2 rows for 3 devices; write one for each");
  EXPECT_EQ(Refusal("[1, 0, 0]", "[-1, 0, 0]"),
            "s.yaml:7:6: wires: row 1, column 0: is -1; must be at least 0 and at most 64");
  EXPECT_EQ(Refusal("[1, 0, 0]", "[nan, 0, 0]"),
            "s.yaml:7:6: wires: row 1, column 0: is 'nan'; write a whole number");
  EXPECT_EQ(Refusal("wire_rate: 24GB/s\n", "#\n"),
            "s.yaml:1:1: has wires, but no 'wire_rate'; write what one wire gives in one "
            "direction");
}

TEST(TopologyFile, NamesThePlaceOfRatesThatAreNone) {
  EXPECT_EQ(Refusal("38.3GB/s", "-38.3GB/s"), "s.yaml:13:28: rate: '-38.3GB/s' is negative");
  EXPECT_EQ(Refusal("38.3GB/s", "nan"),
            "s.yaml:13:28: rate: 'nan' is not a number with a unit, such as '25GB/s'");
  EXPECT_EQ(Refusal("38.3GB/s", "38.3"),
            "s.yaml:13:28: rate: '38.3' has no unit; known: B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, "
            "MiB/s, GiB/s, TiB/s");
  EXPECT_EQ(Refusal("38.3GB/s", "0GB/s"),
            "s.yaml:13:5: links: from 2 to 0 has rate 0; leave out what is no link");
  EXPECT_EQ(Refusal("38.3GB/s", "9000TB/s"), "s.yaml:13:28: rate: is 9000 TB/s; at most 1000TB/s");
  EXPECT_EQ(Refusal("device_egress: 70GB/s", "device_egress: [70GB/s]"),
            "s.yaml:15:16: device_egress: is a list; write a rate such as 25GB/s");
}

TEST(TopologyFile, NamesThePlaceOfDevicesThatAreNone) {
  EXPECT_EQ(Refusal("devices: 3\n", "devices: 0\n"),
            "s.yaml:2:10: devices: is 0; must be at least 1 and at most 128");
  EXPECT_EQ(Refusal("devices: 3\n", ""), "s.yaml:1:1: a topology has no 'devices'; it needs one");
  EXPECT_EQ(Refusal("devices: [0, 1]", "devices: [0, 7]"),
            "s.yaml:18:19: switches: switch 0: names device 7, but devices are 0 to 2");
  EXPECT_EQ(Refusal("devices: [0, 1]", "devices: [0, 0]"),
            "s.yaml:18:19: switches: switch 0: device 0 is behind a switch already; a device has "
            "one way to the host");
  EXPECT_EQ(Refusal("devices: [0, 1]", "devices: []"),
            "s.yaml:18:15: switches: switch 0: has no devices; list those behind it");
  EXPECT_EQ(Refusal("to: 0", "to: 3"),
            "s.yaml:13:19: links: to: names device 3, but devices are 0 to 2");
  EXPECT_EQ(Refusal("to: 0", "to: 2"), "s.yaml:13:5: links: from 2 to 2 leads nowhere");
  EXPECT_EQ(Refusal("from: 1, to: 2", "from: 2, to: 0"),
            "s.yaml:14:5: links: from 2 to 0 is given twice; remove one of them");
  EXPECT_EQ(Refusal("[[0, 1], [2]]", "[[0, 1], [1]]"),
            "s.yaml:16:23: numa_nodes: node 1: device 1 is on node 0 already; a device is on one");
  EXPECT_EQ(Refusal("[[0, 1], [2]]", "[[0, 1]]"),
            "s.yaml:16:13: numa_nodes: device 2 is on none; list every device, or leave the key "
            "out");
}

TEST(TopologyFile, NamesThePlaceOfKeysThatAreWrong) {
  EXPECT_EQ(Refusal("device_egress", "device_egres"),
            "s.yaml:15:1: unknown key 'device_egres'; did you mean 'device_egress'?");
  EXPECT_EQ(Refusal("latency: 2us\n", "latency: 2us\nlatency: 3us\n"),
            "s.yaml:12:1: latency: stands a second time, first in line 11; remove one of them");
  EXPECT_EQ(Refusal("write: 1GB/s, ", ""), "s.yaml:21:5: a drive has no 'write'; it needs one");
  EXPECT_EQ(Refusal("device: V100", "copy_engines: two"),
            "s.yaml:3:15: copy_engines: is 'two'; write one_per_peer (boards with direct links) or "
            "one_for_all_peers (NVSwitch)");
  EXPECT_EQ(Refusal("device: V100", "fabric_wires: 6"),
            "s.yaml:1:1: has both 'wires' and 'fabric_wires'; devices are wired to each other or "
            "to a fabric, remove one");
  EXPECT_EQ(ParseTopology("", "s.yaml").status().message(),
            "s.yaml:1:1: is empty; write a topology, beginning with 'name:'");
  EXPECT_EQ(ParseTopology("- 1\n", "s.yaml").status().message(),
            "s.yaml:1:1: is a list; a topology is written as 'key: value' lines");
}

TEST(TopologyFile, HasPathsThatItsPlansDoNotGoBy) {
  const std::string paths =
      "pcie_paths:\n"
      "  - [X, PIX, unknown]\n"
      "  - [PIX, X, SYS]\n"
      "  - [unknown, SYS, X]\n";
  const auto keys = ParseTopologyKeys(kServer + paths, "s.yaml");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->pcie_paths[0][1], PciePath::kPix);
  EXPECT_EQ(keys->pcie_paths[0][2], PciePath::kUnknown);
  EXPECT_EQ(keys->pcie_paths[2][1], PciePath::kSys);
  EXPECT_EQ(MakeTopology(*keys), *ParseTopology(kServer, "s.yaml"));
  EXPECT_EQ(ParseTopologyKeys(TopologyYaml(*keys), "again")->pcie_paths, keys->pcie_paths);

  const auto refusal = [&](absl::string_view from, absl::string_view to) {
    const std::string text = kServer + absl::StrReplaceAll(paths, {{from, to}});
    return std::string(ParseTopology(text, "s.yaml").status().message());
  };
  EXPECT_EQ(refusal("[PIX, X, SYS]", "[PIX, X, NV2]"),
            "s.yaml:24:14: pcie_paths: row 1, column 2: is 'NV2'; write PIX, PXB, PHB, NODE, SYS "
            "or unknown");
  EXPECT_EQ(refusal("[PIX, X, SYS]", "[PXB, X, SYS]"),
            "s.yaml:24:6: pcie_paths: row 1, column 0: is PXB, but row 0, column 1 is another; "
            "paths are the same both ways");
  EXPECT_EQ(refusal("[PIX, X, SYS]", "[PIX, PIX, SYS]"),
            "s.yaml:24:11: pcie_paths: row 1, column 1: is 'PIX'; a device has no path to itself, "
            "write X");
  EXPECT_EQ(refusal("[PIX, X, SYS]", "[PIX, X]"),
            "s.yaml:24:5: pcie_paths: row 1 has 2 words for 3 devices; write one for each");
}

// In a topology 0 is "no limit known", which nobody means who writes it.
TEST(TopologyFile, RefusesRatesAndSizesOfNothing) {
  EXPECT_EQ(Refusal("to_host: 12GB/s", "to_host: 0GB/s"),
            "s.yaml:18:32: to_host: is 0; write a rate above 0");
  EXPECT_EQ(Refusal("from_host: 11GB/s", "from_host: 0B/s"),
            "s.yaml:18:51: from_host: is 0; write a rate above 0");
  EXPECT_EQ(Refusal("to_host_both: 9GB/s", "to_host_both: 0GB/s"),
            "s.yaml:18:73: to_host_both: is 0; write a rate above 0, or leave the key out where it "
            "is not known");
  EXPECT_EQ(Refusal("read: 2GB/s", "read: 0GB/s"),
            "s.yaml:21:27: read: is 0; write a rate above 0");
  EXPECT_EQ(Refusal("write: 1GB/s", "write: 0GB/s"),
            "s.yaml:21:41: write: is 0; write a rate above 0");
  EXPECT_EQ(Refusal("capacity: 6TB", "capacity: 0TB"),
            "s.yaml:21:16: capacity: is 0; write a size above 0");
  EXPECT_EQ(Refusal("host_memory: 768GB", "host_memory: 0GB"),
            "s.yaml:19:14: host_memory: is 0; write a size above 0, or leave the key out where it "
            "is not known");
  EXPECT_EQ(Refusal("device_memory: 16GiB", "device_memory: 0B"),
            "s.yaml:4:16: device_memory: is 0; write a size above 0, or leave the key out where it "
            "is not known");
  EXPECT_EQ(Refusal("device_egress: 70GB/s", "device_egress: 0GB/s"),
            "s.yaml:15:16: device_egress: is 0; write a rate above 0, or leave the key out where "
            "it is not known");
  EXPECT_EQ(Refusal("wire_rate: 24GB/s\n", "wire_rate: 0GB/s\n"),
            "s.yaml:9:12: wire_rate: is 0; write a rate above 0, or leave the key out where it is "
            "not known");
}

TEST(TopologyFile, RefusesDrivesOfNodesThatAreNone) {
  EXPECT_EQ(Refusal("numa: 1", "numa: 9"), "s.yaml:21:70: numa: is 9, but numa_nodes has 0 to 1");
  EXPECT_EQ(Refusal("numa_nodes: [[0, 1], [2]]\n", ""),
            "s.yaml:20:70: numa: is 1, but the server has node 0 only (numa_nodes lists them)");
  EXPECT_EQ(Refusal("numa: 1", "numa: -1"),
            "s.yaml:21:70: numa: is -1; must be at least 0 and at most 127");
  // Wherever the nodes stand.
  EXPECT_EQ(ParseTopology("name: x\n"
                          "drives: [{capacity: 1TB, read: 1GB/s, write: 1GB/s, numa: 1}]\n"
                          "numa_nodes: [[0], [1]]\n"
                          "devices: 2\n",
                          "x.yaml")
                .status(),
            absl::OkStatus());
}

TEST(TopologyFile, ThatIsMissingOrNoFileIsRefused) {
  EXPECT_EQ(LoadTopology("no/such.yaml").status().message(),
            "cannot read topology 'no/such.yaml': No such file or directory");
  EXPECT_EQ(LoadTopology("configs").status().message(),
            "cannot read topology 'configs': Is a directory");
}

}  // namespace
}  // namespace siphon
