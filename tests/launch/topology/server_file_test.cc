#include "launch/topology/server_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "launch/topology/topology_file.h"

namespace siphon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kMatrix[] =
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV2\t0-7\t1\n"
    "GPU1\tNV2\t X \t0-7\t1\n";
constexpr char kXml[] =
    "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:1a:00.0\" link_speed=\"16 GT/s\" "
    "link_width=\"16\"><gpu dev=\"0\" sm=\"80\"/></pci></cpu></system>\n";

TEST(ServerFile, IsToldApartByWhatIsInIt) {
  EXPECT_EQ(FormatOfServer(kMatrix), ServerFormat::kNvidiaSmi);
  EXPECT_EQ(FormatOfServer("$ nvidia-smi topo -m\nGPU0\tGPU1\n"), ServerFormat::kNvidiaSmi);
  EXPECT_EQ(FormatOfServer("GPU 0: Tesla V100\n  GPU0"), ServerFormat::kNvidiaSmi);
  EXPECT_EQ(FormatOfServer(kXml), ServerFormat::kNcclXml);
  EXPECT_EQ(FormatOfServer("\xef\xbb\xbf\n <?xml version='1.0'?>"), ServerFormat::kNcclXml);
  EXPECT_EQ(FormatOfServer("name: GPU0\ndevices: 1\n"), ServerFormat::kTopologyFile);
  EXPECT_EQ(FormatOfServer("GPU0: 1\n"), ServerFormat::kTopologyFile);
  EXPECT_EQ(FormatOfServer(""), ServerFormat::kTopologyFile);
  EXPECT_EQ(FormatOfServer("\x1b"), ServerFormat::kTopologyFile);
}

// Written out once, by hand.
TEST(ServerFile, OfAMatrixIsATopologyFileWithItsAssumptions) {
  const auto read = ParseServer(kMatrix, "m", ServerFormat::kNvidiaSmi, "V100-32");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(
      read->yaml,
      "# Source: nvidia-smi topo -m.\n"
      "# ASSUMED: neighbours on a NUMA node share a PCIe switch, as on servers with V100; NV# "
      "without network cards does not tell switches, --probe and --nccl_xml do.\n"
      "# ASSUMED: rates are those of such links elsewhere, not measured on this server.\n"
      "# host memory and drives are not told; a topology file can have them.\n"
      "name: \"2 x V100-32 by nvidia-smi topo -m, rates ASSUMED\"\n"
      "device: \"V100-32\"\n"
      "devices: 2\n"
      "device_memory: 34359738368B\n"
      "copy_engines: one_per_peer\n"
      "wires:\n"
      "  - [0, 2]\n"
      "  - [2, 0]\n"
      "wire_rate: 24200000000B/s\n"
      "nominal_wire_rate: 25000000000B/s\n"
      "latency: 2000ns\n"
      "numa_nodes: [[], [0, 1]]\n"
      "switches:\n"
      "  - devices: [0, 1]\n"
      "    to_host: 11700000000B/s\n"
      "    from_host: 11700000000B/s\n"
      "    latency: 9000ns\n");
}

TEST(ServerFile, ReadAgainIsTheSameServerAndSaysWhatItAssumes) {
  for (const char* text : {kMatrix, kXml}) {
    const auto read = ParseServer(text, "m", FormatOfServer(text), "");
    ASSERT_TRUE(read.ok()) << read.status();
    const auto again = ParseServer(read->yaml, "m.yaml", FormatOfServer(read->yaml), /*device=*/"");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->topology, read->topology);
    EXPECT_EQ(again->yaml, "");
    EXPECT_THAT(again->notes, Contains(StartsWith("ASSUMED: rates are those")));
    EXPECT_THAT(again->notes, Contains(StartsWith("Source: ")));
  }
}

TEST(ServerFile, SaysItselfWhatDevicesItHas) {
  EXPECT_EQ(ParseServer("name: x\ndevices: 1\n", "x.yaml", ServerFormat::kTopologyFile, "V100")
                .status()
                .message(),
            "x.yaml: is a topology file, which says itself what devices it has");
}

TEST(TopologyRemarks, AreFirstCommentsAndEveryAssumption) {
  EXPECT_THAT(TopologyRemarks("# Source: a paper\n"
                              "#\n"
                              "## and a letter.\n"
                              "name: \"ASSUMED # no\"\n"
                              "# an aside\n"
                              "latency: 2us  # ASSUMED\n"
                              "latency: 2us  # ASSUMED\n"
                              "  # rates: ASSUMED, too\n"),
              ElementsAre("Source: a paper", "and a letter.", "latency: 2us  # ASSUMED",
                          "rates: ASSUMED, too"));
}

// A file is as wide as somebody wrote it; a note of siphon's own has a line of its own.
TEST(TopologyRemarks, AreWholeHoweverTheirLinesAreBroken) {
  EXPECT_THAT(TopologyRemarks("# Source: a\n"
                              "# paper.\n"
                              "# note: one thing\n"
                              "# note: another\n"
                              "name: x\n"
                              "# An aside.\n"
                              "# Measured once (as\n"
                              "#   elsewhere). The rest is ASSUMED\n"
                              "# to be alike.\n"
                              "# Another aside.\n"
                              "latency: 2us  # ASSUMED\n"
                              "# of nothing\n"),
              ElementsAre("Source: a paper.", "note: one thing", "note: another",
                          "Measured once (as elsewhere). The rest is ASSUMED to be alike.",
                          "latency: 2us  # ASSUMED"));
}

TEST(ServerPreset, ShowsNoPartOfARemark) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    for (const std::string& remark : TopologyRemarks(preset.text)) {
      const bool behind_a_value = absl::StrContains(remark, ":") && absl::StrContains(remark, "#");
      EXPECT_TRUE(behind_a_value || (absl::ascii_isupper(remark[0]) && remark.back() == '.'))
          << preset.name << ": " << remark;
    }
  }
}

TEST(ServerPreset, SaysWhatItAssumes) {
  const auto preset = FindServerPreset("hgx_h200");
  ASSERT_TRUE(preset.ok()) << preset.status();
  EXPECT_EQ(preset->topology, *FindTopologyPreset("hgx_h200"));
  EXPECT_THAT(preset->notes, Contains(HasSubstr("ASSUMED 2 TB")));
  EXPECT_FALSE(FindServerPreset("hgx").ok());
}

}  // namespace
}  // namespace siphon
