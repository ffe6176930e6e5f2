#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "launch/topology/discovered_server.h"
#include "launch/topology/topology_file.h"
#include "planner/topology_symmetry.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// DGX-1 with V100 and four network cards, as an older driver prints it.
constexpr char kDgx1[] =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tmlx5_0\tmlx5_1\tmlx5_2\tmlx5_3\tCPU "
    "Affinity\x1b[0m\n"
    "GPU0\t X \tNV1\tNV1\tNV2\tNV2\tSYS\tSYS\tSYS\tPIX\tSYS\tPHB\tSYS\t0-19,40-59\n"
    "GPU1\tNV1\t X \tNV2\tNV1\tSYS\tNV2\tSYS\tSYS\tPIX\tSYS\tPHB\tSYS\t0-19,40-59\n"
    "GPU2\tNV1\tNV2\t X \tNV2\tSYS\tSYS\tNV1\tSYS\tPHB\tSYS\tPIX\tSYS\t0-19,40-59\n"
    "GPU3\tNV2\tNV1\tNV2\t X \tSYS\tSYS\tSYS\tNV1\tPHB\tSYS\tPIX\tSYS\t0-19,40-59\n"
    "GPU4\tNV2\tSYS\tSYS\tSYS\t X \tNV1\tNV1\tNV2\tSYS\tPIX\tSYS\tPHB\t20-39,60-79\n"
    "GPU5\tSYS\tNV2\tSYS\tSYS\tNV1\t X \tNV2\tNV1\tSYS\tPIX\tSYS\tPHB\t20-39,60-79\n"
    "GPU6\tSYS\tSYS\tNV1\tSYS\tNV1\tNV2\t X \tNV2\tSYS\tPHB\tSYS\tPIX\t20-39,60-79\n"
    "GPU7\tSYS\tSYS\tSYS\tNV1\tNV2\tNV1\tNV2\t X \tSYS\tPHB\tSYS\tPIX\t20-39,60-79\n"
    "mlx5_0\tPIX\tPIX\tPHB\tPHB\tSYS\tSYS\tSYS\tSYS\t X \tSYS\tPHB\tSYS\n"
    "\n"
    "Legend:\n"
    "  X    = Self\n";

std::vector<std::vector<int>> Groups(const Topology& topology) {
  std::vector<std::vector<int>> groups;
  for (const PcieSwitch& uplink : topology.switches) {
    groups.emplace_back();
    for (const DeviceId device : uplink.devices) groups.back().push_back(device.value);
  }
  return groups;
}

TEST(ReadNvidiaSmi, FindsDgx1AsThePresetHasIt) {
  const auto read = ParseNvidiaSmi(kDgx1, "topo.txt", "");
  ASSERT_TRUE(read.ok()) << read.status();
  const Topology preset = *FindTopologyPreset("dgx1_v100");
  EXPECT_EQ(read->topology.links, preset.links);  // wires, rates and latencies
  EXPECT_EQ(read->topology.switches, preset.switches);
  EXPECT_EQ(read->topology.copy_engines, CopyEngines::kOnePerPeer);
  for (int device = 0; device < 8; ++device) {
    EXPECT_EQ(read->topology.devices[device].numa, device / 4);
  }
  EXPECT_EQ(TopologySymmetry(read->topology).DistinctMaps(), 10'080);
  EXPECT_EQ(read->topology.name, "8 devices by nvidia-smi topo -m, V100 and rates ASSUMED");
  EXPECT_EQ(read->topology.devices[0].memory, Bytes(0));
  EXPECT_THAT(
      read->notes,
      ElementsAre("ASSUMED: devices are V100 by their wires; --device says what they are",
                  "ASSUMED: rates are those of such links elsewhere, not measured on this server",
                  "the devices' memory is not told; --device names their kind",
                  "host memory and drives are not told; a topology file can have them"));
}

TEST(ReadNvidiaSmi, TakesTheKindOfDeviceFromItsList) {
  const std::string list =
      "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-4c1cbd26-95cd-21d9-1e22-3b2e6d0ab2b5)\n"
      "GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-0d9a9d1b-b33f-ee14-3a64-b1ad6a0cdd76)\n";
  for (const std::string& text : {list + kDgx1, kDgx1 + list}) {
    const auto read = ParseNvidiaSmi(text, "topo.txt", "");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->topology.device_kind, "V100-32");
    EXPECT_EQ(read->topology.devices[7].memory, Bytes(int64_t{32} << 30));
    EXPECT_EQ(read->topology.name, "8 x V100-32 by nvidia-smi topo -m, rates ASSUMED");
    EXPECT_EQ(read->notes.size(), 2);
  }
  // Whoever names it knows better.
  EXPECT_EQ(ParseNvidiaSmi(list + kDgx1, "t", "v100")->topology.device_kind, "V100");
  // Not a kind that is known.
  EXPECT_EQ(ParseNvidiaSmi(absl::StrCat("GPU 0: Voodoo 2 12MB\n", kDgx1), "t", "")
                ->topology.devices[0]
                .memory,
            Bytes(0));
}

TEST(ReadNvidiaSmi, WarnsOfDevicesOfSeveralKinds) {
  const std::string list = "GPU 0: Tesla V100-SXM2-32GB (UUID: a)\nGPU 1: NVIDIA H200 (UUID: b)\n";
  const auto read = ParseNvidiaSmi(list + kDgx1, "topo.txt", "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.device_kind, "V100-32");
  EXPECT_EQ(read->notes[0],
            "warning: nvidia-smi -L lists devices of several kinds; all are planned for as the "
            "first");
  EXPECT_EQ(ParseNvidiaSmi(list + kDgx1, "topo.txt", "V100-32")->notes.size(), 2);
}

TEST(ReadNvidiaSmi, KnowsTheMemoryOfEveryKindAsPresetsHaveIt) {
  const std::string one = "\tGPU0\tCPU Affinity\nGPU0\t X \t0-15\n";
  for (const TopologyPreset& preset : TopologyPresets()) {
    const Topology server = *FindTopologyPreset(preset.name);
    const auto read = ParseNvidiaSmi(one, "topo.txt", server.device_kind);
    ASSERT_TRUE(read.ok()) << read.status();
    const Bytes memory = read->topology.devices[0].memory;
    EXPECT_GT(memory, Bytes(0)) << preset.name;
    // A superchip has more than the device that computes like it; of one server it is not known.
    const bool own = preset.name == "grace_hopper" || preset.name == "v100x4_th2k";
    EXPECT_TRUE(own || memory == server.devices[0].memory) << preset.name;
  }
  EXPECT_EQ(ParseNvidiaSmi(one, "topo.txt", "A800")->topology.device_kind, "A100-80");
  EXPECT_EQ(ParseNvidiaSmi(one, "topo.txt", "A800")->topology.devices[0].memory,
            Bytes(int64_t{80} << 30));
  EXPECT_EQ(ParseNvidiaSmi(one, "topo.txt", "V100-64")->topology.devices[0].memory, Bytes(0));
}

TEST(ReadNvidiaSmi, RefusesWiresOfAKindThatHasNone) {
  EXPECT_EQ(ParseNvidiaSmi(kDgx1, "topo.txt", "GTX-1080Ti").status().message(),
            "topo.txt: has NVLinks, which devices of kind 'GTX-1080Ti' do not have; name the kind "
            "that is there");
}

// `devices` that are all NV`wires` to each other, in pairs PXB to a card of their own, with the
// columns of a newer driver.
std::string FabricText(int devices, int wires) {
  std::string text;
  for (int device = 0; device < devices; ++device) absl::StrAppend(&text, "    GPU", device);
  for (int card = 0; card < devices / 2; ++card) absl::StrAppend(&text, " NIC", card);
  text += "  CPU Affinity    NUMA Affinity   GPU NUMA ID\n";
  for (int device = 0; device < devices; ++device) {
    absl::StrAppend(&text, "GPU", device);
    for (int peer = 0; peer < devices; ++peer) {
      absl::StrAppend(&text, peer == device ? "  X" : absl::StrCat("  NV", wires));
    }
    for (int card = 0; card < devices / 2; ++card) {
      text += card == device / 2 ? "  PXB" : "  SYS";
    }
    absl::StrAppend(&text, "  0-15,64-79   ", 3 - device / 2, "   N/A\n");
  }
  return text;
}

TEST(ReadNvidiaSmi, TellsAFabricByMoreWiresThanADeviceHas) {
  const auto read = ParseNvidiaSmi(FabricText(8, 12), "topo.txt", "");
  ASSERT_TRUE(read.ok()) << read.status();
  const Topology& topology = read->topology;
  EXPECT_EQ(topology.device_kind, "A100");
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
  EXPECT_EQ(topology.devices[3].egress.value, 276'000'000'000);
  EXPECT_EQ(FindLink(topology, DeviceId(0), DeviceId(7))->rate.value, 276'000'000'000);
  EXPECT_THAT(Groups(topology), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5),
                                            ElementsAre(6, 7)));
  EXPECT_EQ(topology.switches[0].to_host_both.value, 19'000'000'000);
  EXPECT_EQ(topology.devices[0].numa, 3);
  EXPECT_EQ(topology.devices[7].numa, 0);
}

// FabricText without its cards.
std::string WithoutCards(int devices, int wires) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(FabricText(devices, wires), '\n')) {
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      if (absl::StartsWith(word, "NIC") || word == "PXB" || word == "SYS") continue;
      absl::StrAppend(&text, " ", word);
    }
    text += "\n";
  }
  return text;
}

TEST(ReadNvidiaSmi, TakesNeighboursToShareASwitchWhereNothingTells) {
  for (const auto& [device, wires] : {std::pair("A100-80", 12), std::pair("H100", 18)}) {
    const auto read = ParseNvidiaSmi(WithoutCards(8, wires), "topo.txt", device);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(Groups(read->topology), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                                    ElementsAre(4, 5), ElementsAre(6, 7)));
    EXPECT_THAT(read->notes[0],
                HasSubstr("ASSUMED: neighbours on a NUMA node share a PCIe switch, as on servers "
                          "with "));
  }
  // What cards tell needs no assumption.
  EXPECT_EQ(ParseNvidiaSmi(FabricText(8, 12), "topo.txt", "A100-80")->notes.size(), 2);
}

// DGX-1's matrix without its cards: four devices a node by the CPUs beside them, NV1 and NV2.
TEST(ReadNvidiaSmi, FindsDgx1sSwitchesWithoutItsCards) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(kDgx1, '\n')) {
    std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (cells.size() == 14) cells.erase(cells.begin() + 9, cells.begin() + 13);
    if (!absl::StartsWith(cells[0], "mlx5"))
      absl::StrAppend(&text, absl::StrJoin(cells, "\t"), "\n");
  }
  const auto read = ParseNvidiaSmi(text, "topo.txt", "V100-32");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.switches, FindTopologyPreset("dgx1_v100")->switches);
  EXPECT_EQ(read->notes.size(), 3);
}

TEST(ReadNvidiaSmi, LeavesEachDeviceItsOwnWayOfAKindThatComesSo) {
  const auto read = ParseNvidiaSmi(WithoutCards(8, 18), "topo.txt", "B300");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.switches.size(), 8);
  EXPECT_THAT(read->notes[0],
              HasSubstr("ASSUMED: every device has a way to the host of its own, though "));
}

// Of three on a node the last is alone, and so is each of two that meet on the far side of a CPU.
TEST(ReadNvidiaSmi, PairsOnlyNeighboursOfANode) {
  const auto read = ParseNvidiaSmi(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV2\tNV2\tSYS\tSYS\t0-7\t0\n"
      "GPU1\tNV2\t X \tNV2\tSYS\tSYS\t0-7\t0\n"
      "GPU2\tNV2\tNV2\t X \tSYS\tSYS\t0-7\t0\n"
      "GPU3\tSYS\tSYS\tSYS\t X \tNODE\t8-15\t1\n"
      "GPU4\tSYS\tSYS\tSYS\tNODE\t X \t8-15\t1\n",
      "topo.txt", "V100");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(Groups(read->topology),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3), ElementsAre(4)));
}

TEST(ReadNvidiaSmi, TakesTheKindOfDeviceThatItIsTold) {
  const auto guessed = ParseNvidiaSmi(FabricText(4, 2), "topo.txt", "");
  ASSERT_TRUE(guessed.ok()) << guessed.status();
  EXPECT_EQ(guessed->topology.device_kind, "V100");
  EXPECT_EQ(guessed->topology.devices[0].egress.value, 0);  // wired to each other
  const auto told = ParseNvidiaSmi(FabricText(4, 2), "topo.txt", "a100");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->topology.links[0].rate.value, 46'000'000'000);
  EXPECT_EQ(told->topology.devices[0].memory, Bytes(int64_t{40} << 30));
  EXPECT_EQ(told->notes.size(), 2);
}

TEST(ReadNvidiaSmi, GivesDevicesWithoutWiresTheirWayToTheHost) {
  const auto read = ParseNvidiaSmi(
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tPIX\tSYS\t0-7\t0\tN/A\n"
      "GPU1\tPIX\t X \tSYS\t0-7\t0\tN/A\n"
      "GPU2\tSYS\tSYS\t X \t8-15\t1\tN/A\n",
      "topo.txt", "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->topology.links.empty());
  EXPECT_THAT(Groups(read->topology), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_EQ(read->topology.switches[1].to_host.value, 11'700'000'000);
  EXPECT_EQ(read->topology.devices[2].numa, 1);
  EXPECT_TRUE(read->knows_nodes);
  EXPECT_THAT(read->notes[0], HasSubstr("ASSUMED: PCIe is 3.0"));
}

// NV# hides the path, and a virtual machine the nodes.
TEST(ReadNvidiaSmi, KeepsThePathsThatItReads) {
  using enum PciePath;
  const auto read = ParseNvidiaSmi(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV4\tPXB\tPHB\t\tN/A\n"
      "GPU1\tNV4\t X \tNODE\tSYS\t\tN/A\n"
      "GPU2\tPXB\tNODE\t X \tPIX\t\tN/A\n"
      "GPU3\tPHB\tSYS\tPIX\t X \t\tN/A\n",
      "topo.txt", "A100");
  ASSERT_TRUE(read.ok()) << read.status();
  const PciePaths paths = {{kUnknown, kUnknown, kPxb, kPhb},
                           {kUnknown, kUnknown, kNode, kSys},
                           {kPxb, kNode, kUnknown, kPix},
                           {kPhb, kSys, kPix, kUnknown}};
  EXPECT_EQ(read->pcie_paths, paths);
  EXPECT_FALSE(read->knows_nodes);
  EXPECT_EQ(ParseDiscovered(read->yaml, "again")->pcie_paths, paths);
}

TEST(ReadNvidiaSmi, ReadsOneDevice) {
  const auto read = ParseNvidiaSmi(
      "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n", "topo.txt",
      "H200");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(DeviceCount(read->topology), 1);
  EXPECT_THAT(Groups(read->topology), ElementsAre(ElementsAre(0)));
  EXPECT_EQ(read->topology.switches[0].from_host.value, 55'600'000'000);
}

// kDgx1 with `from` replaced, which must be there.
std::string Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kDgx1, {{from, to}});
  EXPECT_NE(text, kDgx1) << from;
  const auto read = ParseNvidiaSmi(text, "topo.txt", "");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

TEST(ReadNvidiaSmi, NamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(Refusal("GPU2\tNV1\tNV2", "GPU2\tNV2\tNV2"),
            "topo.txt:4:6: row GPU2, column 0: is NV2, but row GPU0, column 2 is NV1; connections "
            "are the same both ways");
  EXPECT_EQ(Refusal("GPU2\tNV1", "GPU2\tNVX"),
            "topo.txt:4:6: unknown connection 'NVX'; known: X, NV1 and more, PIX, PXB, PHB, NODE, "
            "SYS");
  EXPECT_EQ(Refusal("GPU2\tNV1", "GPU2\t X "),
            "topo.txt:4:7: row GPU2, column 0: is 'X'; X stands on the diagonal and only there");
  EXPECT_EQ(Refusal("GPU2\tNV1", "GPU5\tNV1"),
            "topo.txt:4:1: row 'GPU5' stands where GPU2 should; give the whole matrix");
  EXPECT_EQ(Refusal("GPU2\tNV1\tNV2\t X \tNV2\tSYS\tSYS\tNV1\tSYS\tPHB", "GPU2\tPHB"),
            "topo.txt:4:1: row GPU2 has 5 cells for 12 columns; give the whole matrix");
  EXPECT_EQ(Refusal("GPU6\tGPU7", "GPU7\tGPU6"),
            "topo.txt:1:36: GPU7 stands where GPU6 should; give the whole matrix");
  EXPECT_EQ(Refusal("GPU0", "Gpu0"),
            "topo.txt:1:1: has no line that begins with GPU0 GPU1; give the text of nvidia-smi "
            "topo -m");
  EXPECT_EQ(ParseNvidiaSmi("GPU0 GPU1\nGPU0 X NV1\n", "t", "").status().message(),
            "t:1:1: has 1 rows for 2 devices; give the whole matrix");
}

TEST(ReadNvidiaSmi, SurvivesAnyPrefixOfItsInput) {
  const std::string text = kDgx1;
  for (size_t length = 0; length < text.size(); ++length) {
    const auto read = ParseNvidiaSmi(text.substr(0, length), "topo.txt", "");
    EXPECT_TRUE(!read.ok() || DeviceCount(read->topology) == 8) << length;
  }
}

}  // namespace
}  // namespace siphon
