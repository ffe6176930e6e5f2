#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/topology/discovered_server.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::StartsWith;

// Two V100 behind one bridge of another bridge and one alone, wired 0 to 1 twice and 0 to 2 once.
constexpr char kMesh[] =
    "<system version=\"1\">\n"
    "  <cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\">\n"
    "    <pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">\n"
    "      <pci busid=\"0000:11:00.0\" class=\"0x060400\" link_speed=\"8 GT/s\" "
    "link_width=\"16\">\n"
    "        <pci busid=\"0000:1a:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" "
    "link_width=\"16\">\n"
    "          <gpu dev=\"0\" sm=\"70\" rank=\"0\" gdr=\"1\">\n"
    "            <nvlink target=\"0000:1b:00.0\" count=\"2\" tclass=\"0x030200\"/>\n"
    "            <nvlink target=\"0000:2a:00.0\" count=\"1\" tclass=\"0x030200\"/>\n"
    "          </gpu>\n"
    "        </pci>\n"
    "        <pci busid=\"0000:1b:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" "
    "link_width=\"16\">\n"
    "          <gpu dev=\"1\" sm=\"70\" rank=\"1\" gdr=\"1\">\n"
    "            <nvlink target=\"0000:1a:00.0\" count=\"2\" tclass=\"0x030200\"/>\n"
    "          </gpu>\n"
    "        </pci>\n"
    "        <pci busid=\"0000:1c:00.0\" class=\"0x020000\"><nic><net name=\"eth0\"/></nic></pci>\n"
    "      </pci>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "  <cpu numaid=\"1\" affinity=\"ffff0000\" arch=\"x86_64\">\n"
    "    <pci busid=\"0000:2a:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"8\">\n"
    "      <gpu dev=\"2\" sm=\"70\" rank=\"2\" gdr=\"1\">\n"
    "        <nvlink target=\"0000:1a:00.0\" count=\"1\" tclass=\"0x030200\"/>\n"
    "      </gpu>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "</system>\n";

TEST(ReadNcclXml, FindsLinksSwitchesAndNumaNodes) {
  const auto read = ParseNcclXml(kMesh, "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  const auto link = [](int from, int to, int wires) {
    return TopologyLink{DeviceId(from), DeviceId(to), BytesPerSecond(24'200'000'000 * wires),
                        Nanos(2000), wires};
  };
  const BytesPerSecond gen3(11'700'000'000);
  Topology expected{.name = "3 x V100 by NCCL's XML, rates ASSUMED",
                    .device_kind = "V100",
                    .devices = {{.numa = 0}, {.numa = 0}, {.numa = 1}},
                    .links = {link(0, 1, 2), link(0, 2, 1), link(1, 0, 2), link(2, 0, 1)},
                    .switches = {{.devices = {DeviceId(0), DeviceId(1)},
                                  .to_host = gen3,
                                  .from_host = gen3,
                                  .latency = Nanos(9000)},
                                 // Eight lanes of PCIe 4.0.
                                 {.devices = {DeviceId(2)},
                                  .to_host = BytesPerSecond(13'000'000'000),
                                  .from_host = BytesPerSecond(13'000'000'000),
                                  .to_host_both = BytesPerSecond(9'500'000'000),
                                  .from_host_both = BytesPerSecond(9'500'000'000),
                                  .latency = Nanos(9000)}},
                    .nominal_wire_rate = BytesPerSecond(25'000'000'000)};
  EXPECT_EQ(read->topology, expected);
  EXPECT_THAT(
      read->notes,
      ElementsAre("ASSUMED: rates are those of such links elsewhere, not measured on this server",
                  "the devices' memory is not told; --device names their kind",
                  "host memory and drives are not told; a topology file can have them"));
}

// `devices` of compute capability `sm`, each with `wires` to each of `switches` NVSwitches.
std::string FabricXml(int devices, int sm, int switches, int wires) {
  std::string text = "<system version=\"1\"><cpu numaid=\"-1\">";
  for (int device = 0; device < devices; ++device) {
    absl::StrAppend(&text, "<pci busid=\"0000:0", device,
                    ":00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"", device,
                    "\" sm=\"", sm, "\">");
    for (int one = 0; one < switches; ++one) {
      absl::StrAppend(&text, "<nvlink target=\"0000:c", one, ":00.0\" count=\"", wires,
                      "\" tclass=\"0x068000\"/>");
    }
    text += "</gpu></pci>\n";
  }
  return text + "</cpu></system>";
}

TEST(ReadNcclXml, AddsUpTheWiresToAFabric) {
  const auto read = ParseNcclXml(FabricXml(4, 90, 3, 6), "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  const Topology& topology = read->topology;
  EXPECT_EQ(topology.device_kind, "H100");
  EXPECT_EQ(topology.copy_engines, CopyEngines::kOneForAllPeers);
  EXPECT_EQ(topology.links.size(), 12);
  EXPECT_EQ(topology.links[0].wires, 18);
  EXPECT_EQ(topology.devices[0].egress.value, 374'400'000'000);
  EXPECT_EQ(topology.switches.size(), 4);
  EXPECT_EQ(topology.switches[0].from_host.value, 55'600'000'000);
}

TEST(ReadNcclXml, CountsTheFewestWiresToAFabricThatOneDeviceHasUp) {
  std::string text = FabricXml(3, 90, 1, 18);
  text.replace(text.rfind("count=\"18\""), 10, "count=\"17\"");
  const auto read = ParseNcclXml(text, "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  for (const TopologyLink& link : read->topology.links) EXPECT_EQ(link.wires, 17);
  EXPECT_EQ(read->topology.devices[0].egress.value, int64_t{17} * 20'800'000'000);
  EXPECT_THAT(read->notes,
              IsSupersetOf({"warning: devices have 17 to 18 NVLinks to the switches; each is taken "
                            "to have 17"}));
}

TEST(ReadNcclXml, SaysWhichKindItTakesAnUnknownOneFor) {
  const auto read = ParseNcclXml(FabricXml(2, 75, 1, 1), "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.name, "2 devices by NCCL's XML, V100 and rates ASSUMED");
  EXPECT_THAT(read->notes, IsSupersetOf({"ASSUMED: devices of compute capability 75 are as V100; "
                                         "--device says what they are"}));
}

// A machine of many sockets, whose file would be a list of so many nodes.
TEST(ReadNcclXml, CountsFarNumaNodesAnew) {
  const auto read = ParseNcclXml(
      absl::StrReplaceAll(kMesh, {{"numaid=\"1\"", "numaid=\"1048576\""}}), "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.devices[0].numa, 0);
  EXPECT_EQ(read->topology.devices[2].numa, 1);
}

TEST(ReadNcclXml, SaysHowDevicesMeetAsFarAsTheFileShowsIt) {
  const auto hidden = ParseNcclXml(FabricXml(2, 90, 1, 18), "topo.xml", "");
  ASSERT_TRUE(hidden.ok()) << hidden.status();
  EXPECT_FALSE(hidden->knows_nodes);
  EXPECT_EQ(hidden->pcie_paths[0][1], PciePath::kUnknown);
  const auto shown = ParseNcclXml(kMesh, "topo.xml", "");
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_TRUE(shown->knows_nodes);
  EXPECT_EQ(shown->pcie_paths[0][1], PciePath::kPix);
  EXPECT_EQ(shown->pcie_paths[0][2], PciePath::kSys);
  // One of two straight below the outer switch.
  const std::string one =
      "<pci busid=\"0000:1b:00.0\" link_speed=\"8 GT/s\" link_width=\"16\">"
      "<gpu dev=\"1\" sm=\"70\"/></pci>";
  const std::string other = absl::StrReplaceAll(one, {{"1b", "1a"}, {"dev=\"1\"", "dev=\"0\""}});
  const auto further = ParseNcclXml(
      absl::StrCat("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:10:00.0\">"
                   "<pci busid=\"0000:11:00.0\">",
                   other, "</pci>", one, "</pci></cpu></system>"),
      "topo.xml", "");
  ASSERT_TRUE(further.ok()) << further.status();
  EXPECT_EQ(further->pcie_paths[0][1], PciePath::kPxb);
}

TEST(ReadNcclXml, TakesC2cForTheWayToTheHost) {
  const auto read = ParseNcclXml(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0009:01:00.0\" link_speed=\"32.0 "
      "GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\"><c2c bw=\"45000\" "
      "count=\"10\"/></gpu></pci></cpu></system>",
      "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.switches[0].from_host.value, 346'500'000'000);
  EXPECT_EQ(read->topology.switches[0].from_host_both.value, 225'000'000'000);
}

TEST(ReadNcclXml, SaysWhatItLeavesOutOrDoesNotKnow) {
  const std::string text = absl::StrReplaceAll(
      kMesh, {{"dev=\"2\"", "dev=\"5\""},
              {"16.0 GT/s PCIe", "Unknown speed"},
              {"<nvlink target=\"0000:2a:00.0\" count=\"1\" tclass=\"0x030200\"/>",
               "<nvlink target=\"0000:3a:00.0\" count=\"1\" tclass=\"0x030200\"/>"},
              {"        <nvlink target=\"0000:1a:00.0\" count=\"1\" tclass=\"0x030200\"/>",
               "<nvlink target=\"0004:00:00.0\" count=\"3\" tclass=\"0x068001\"/>"}});
  const auto read = ParseNcclXml(text, "topo.xml", "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->topology.links.size(), 2);
  EXPECT_THAT(
      read->notes,
      IsSupersetOf(
          {"the file has devices up to 5, but not all; they are numbered 0 to 2",
           "wires of device 2 to '0004:00:00.0' (class '0x068001') lead to no device",
           "wires to 1 devices that the file does not have are left out",
           "ASSUMED: the PCIe link of device 2 is 3.0 x16; the file has speed 'Unknown speed' and "
           "8 lanes"}));
  EXPECT_EQ(read->topology.switches[1].to_host.value, 11'700'000'000);
}

std::string Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kMesh, {{from, to}});
  EXPECT_NE(text, kMesh) << from;
  const auto read = ParseNcclXml(text, "topo.xml", "");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

TEST(ReadNcclXml, NamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(Refusal("\"0000:1a:00.0\" count=\"2\"", "\"0000:1a:00.0\" count=\"3\""),
            "topo.xml:12:11: device 1 has 3 wires to device 0, which has 2 back; a wire runs both "
            "ways");
  EXPECT_EQ(Refusal("count=\"2\"", "count=\"-2\""),
            "topo.xml:7:13: <nvlink count>: is '-2'; must be a whole number from 1 to 64");
  EXPECT_EQ(Refusal("count=\"2\"", "count=\"nan\""),
            "topo.xml:7:13: <nvlink count>: is 'nan'; must be a whole number from 1 to 64");
  EXPECT_EQ(Refusal("dev=\"1\"", "dev=\"0\""),
            "topo.xml:12:11: <gpu dev>: device 0 is given twice; one server has it once");
  EXPECT_EQ(Refusal("sm=\"70\" ", ""), "topo.xml:6:11: <gpu sm>: is missing; NCCL writes it");
  EXPECT_EQ(Refusal("numaid=\"1\"", "numaid=\"one\""),
            "topo.xml:20:3: <cpu numaid>: is 'one'; must be a whole number from -1 to 1048576");
  EXPECT_EQ(Refusal("0000:1b:00.0\" count", "0000:1a:00.0\" count"),
            "topo.xml:7:13: device 0 is wired to itself");
  EXPECT_EQ(Refusal("gpu", "gpx"), "topo.xml:1:1: <system> has no <gpu>; a topology has devices");
  EXPECT_EQ(Refusal("system", "sistem"),
            "topo.xml:1:1: has no <system>; give the file that NCCL_TOPO_DUMP_FILE names");
  EXPECT_THAT(Refusal("</system>", "<"), StartsWith("topo.xml:27:2: not XML: "));
  std::string broken = FabricXml(2, 90, 1, 18);
  broken.replace(broken.rfind("<nvlink"), broken.rfind("</gpu>") - broken.rfind("<nvlink"), "");
  EXPECT_EQ(ParseNcclXml(broken, "topo.xml", "").status().message(),
            "topo.xml:2:71: device 1 has no wires to the NVSwitches that others are on; NCCL saw a "
            "broken fabric");
}

TEST(ReadNcclXml, RefusesDeepNestingAndSurvivesAnyPrefix) {
  std::string deep = "<system><cpu numaid=\"0\">";
  for (int level = 0; level < 200; ++level) deep += "<pci>";
  for (int level = 0; level < 200; ++level) deep += "</pci>";
  EXPECT_EQ(ParseNcclXml(deep + "</cpu></system>", "t", "").status().message(),
            "t:1:345: nested deeper than 64 levels");
  const std::string text = kMesh;
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_FALSE(ParseNcclXml(text.substr(0, length), "t", "").ok()) << length;
  }
}

}  // namespace
}  // namespace siphon
