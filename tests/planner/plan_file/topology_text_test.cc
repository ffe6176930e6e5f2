#include "planner/plan_file/topology_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace siphon {
namespace {

// Reads lines as a plan's reader would; the message of the first that is refused.
std::string ReadLines(absl::string_view text, Topology& topology) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const PlanLine whole = {++number, line, absl::StripAsciiWhitespace(line)};
    const size_t colon = whole.words.find(':');
    const PlanPair pair = {
        WordAt(whole, whole.words.substr(0, colon)),
        WordAt(whole, absl::StripLeadingAsciiWhitespace(whole.words.substr(colon + 1)))};
    const absl::Status read = ReadTopologyLine(pair, topology);
    if (!read.ok()) return std::string(read.message());
  }
  return "";
}

std::string Refusal(absl::string_view text) {
  Topology topology;
  return ReadLines(text, topology);
}

// Four devices in two pairs of two links each, the host behind two switches, one drive.
Topology FourDevices() {
  Topology topology = {.name = "four of a kind", .device_kind = "V100-32"};
  topology.devices.assign(4, {.memory = Bytes(int64_t{32} << 30), .egress = BytesPerSecond(6)});
  topology.devices[2].numa = topology.devices[3].numa = 1;
  for (const auto& [from, to] : {std::pair(0, 1), {0, 2}, {1, 0}, {2, 0}}) {
    topology.links.push_back({.from = DeviceId(from),
                              .to = DeviceId(to),
                              .rate = BytesPerSecond(24'200'000'000),
                              .latency = Nanos(2'000),
                              .wires = 1});
  }
  topology.switches = {{.devices = {DeviceId(0), DeviceId(1)},
                        .to_host = BytesPerSecond(11'700'000'000),
                        .latency = Nanos(9'000)},
                       {}};
  topology.host_memory = Bytes(512'000'000'000);
  topology.drives = {{.capacity = Bytes(2'000'000'000'000), .read = BytesPerSecond(3)}};
  return topology;
}

TEST(TopologyText, PutsWhatIsAlikeOnOneLine) {
  EXPECT_EQ(TopologyLines(FourDevices()),
            "  name:               four of a kind\n"
            "  device_kind:        V100-32\n"
            "  copy_engines:       one_per_peer\n"
            "  host_memory:        512GB\n"
            "  devices 0 to 1: memory 32GiB, egress 6B/s, numa 0\n"
            "  devices 2 to 3: memory 32GiB, egress 6B/s, numa 1\n"
            "  links 0 -> 1, 2: rate 24.2GB/s, latency 2us, wires 1\n"
            "  links 1 -> 0: rate 24.2GB/s, latency 2us, wires 1\n"
            "  links 2 -> 0: rate 24.2GB/s, latency 2us, wires 1\n"
            "  switch 0: devices 0 1, to_host 11.7GB/s, from_host 0B/s, latency 9us\n"
            "  switch 1: to_host 0B/s, from_host 0B/s\n"
            "  drive 0: capacity 2000GB, read 3B/s, numa 0\n");
  Topology read;
  EXPECT_EQ(ReadLines(TopologyLines(FourDevices()), read), "");
  EXPECT_EQ(read, FourDevices());
}

TEST(TopologyText, IsReadBackWhateverTheServer) {
  std::mt19937 random(11);
  const auto rate = [&random] { return BytesPerSecond(random() % 3 == 0 ? 0 : random()); };
  for (int round = 0; round < 200; ++round) {
    const int devices = 1 + static_cast<int>(random() % 9);
    Topology topology = random() % 2 == 0 ? UniformTopology(devices, rate(), Nanos(random()))
                                          : NvswitchTopology(devices, rate(), Nanos(random()));
    topology = WithHost(topology, 1 + static_cast<int>(random() % 4),
                        {.to_host = rate(), .from_host_both = rate(), .latency = Nanos(random())});
    for (TopologyLink& link : topology.links) link.wires = static_cast<int>(random() % 3);
    for (TopologyDevice& device : topology.devices) device.memory = Bytes(random() % 2);
    if (random() % 2 == 0) topology.drives.push_back({.write = rate(), .numa = 3});
    const int servers = 1 + static_cast<int>(random() % 3);
    topology = SeveralServers(topology, servers, {rate(), Nanos(random())});
    Topology read;
    ASSERT_EQ(ReadLines(TopologyLines(topology), read), "");
    EXPECT_EQ(read, topology) << TopologyLines(topology);
  }
}

TEST(TopologyText, NamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(Refusal("  device 1: numa 0"), "1:10: device '1' is out of order; the next one is 0");
  EXPECT_EQ(Refusal("  devices 0 to 4096: numa 0"), "1:11: a topology has 4096 devices at most");
  EXPECT_EQ(Refusal("  devices 0 to 2: ram 3GiB"),
            "1:19: unknown figure 'ram'; known: memory, egress, ingress, numa, server");
  EXPECT_EQ(Refusal("  device 0: numa 0\n  links 0 -> 1: rate 1GB/s"),
            "2:14: device 1 is not described above; there are 1");
  EXPECT_EQ(Refusal("  device 0: numa 0\n  links 0, 1: rate 1GB/s"),
            "2:9: '0, 1' are no links; write '0 -> 1, 2: ' and their rate");
  EXPECT_EQ(Refusal("  switch 0: devices 0, to_host 1GB/s"),
            "1:21: device 0 is not described above; there are 0");
  EXPECT_EQ(Refusal("  copy_engines: two"),
            "1:17: copy_engines is 'two'; write one_per_peer or one_for_all_peers");
  EXPECT_EQ(Refusal("  colour: red"),
            "1:3: unknown key 'colour'; known: name, device_kind, copy_engines, "
            "nominal_wire_rate, host_memory, network_rate, network_latency, devices, links, "
            "switch, drive");
}

}  // namespace
}  // namespace siphon
