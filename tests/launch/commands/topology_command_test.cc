#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TopologyCommand : public CommandTest {
 protected:
  // The exit code; what it printed is in out_ and error_.
  int Run(std::vector<std::string> flags) {
    const CommandEnd end = RunRegisteredCommand("topology", std::move(flags));
    out_ = WithoutDirectory(end.out);
    error_ = WithoutDirectory(end.err);
    return end.code;
  }

  std::string File(absl::string_view text) const { return WriteFile("server", text); }

  std::string out_;
  std::string error_;
};

TEST_F(TopologyCommand, ShowsAllOfASmallServer) {
  const std::string file = File(
      "name: three cards\n"
      "device: V100\n"
      "devices: 3\n"
      "device_memory: 16GiB\n"
      "wires: [[0, 2, 0], [2, 0, 0], [0, 0, 0]]\n"
      "wire_rate: 24.2GB/s\n"
      "nominal_wire_rate: 25GB/s\n"
      "links: [{from: 1, to: 0, rate: 29.9GB/s}]\n"
      "device_egress: 50GB/s\n"
      "switches:\n"
      "  - {devices: [0, 1], to_host: 12GB/s, from_host: 11GB/s, to_host_both: 9GB/s, latency: "
      "9us}\n"
      "host_memory: 64GiB\n"
      "drives: [{capacity: 2TiB, read: 3GB/s, write: 1.5GB/s}]\n");
  ASSERT_EQ(Run({"--file", file}), kExitDone) << error_;
  EXPECT_EQ(
      out_,
      "DIR/server: three cards\n"
      "\n"
      "Connections (NV#: NVLinks, PIX: one PCIe switch, NODE: one NUMA node, SYS: two)\n"
      "      GPU0  GPU1  GPU2\n"
      "GPU0     X   NV2  NODE\n"
      "GPU1   NV2     X  NODE\n"
      "GPU2  NODE  NODE     X\n"
      "\n"
      "Rate of one large copy from row to column, GB/s (-: through the host)\n"
      "      GPU0  GPU1  GPU2\n"
      "GPU0     X  48.4     -\n"
      "GPU1  29.9     X     -\n"
      "GPU2     -     -     X\n"
      "\n"
      "Devices (V100; -: no limit known; copy engines: one_per_peer)\n"
      "device    memory  all out GB/s  all in GB/s  copy lanes  switch  NUMA\n"
      "GPU0    16.0 GiB            50            -           1       0     0\n"
      "GPU1    16.0 GiB            50            -           1       0     0\n"
      "GPU2    16.0 GiB            50            -           0       -     0\n"
      "\n"
      "host memory  64.0 GiB\n"
      "\n"
      "PCIe switches: their devices share one way to the host, GB/s\n"
      "switch  to host  from host  to, both run  from, both run  latency  devices\n"
      "0            12         11             9        as alone  9.00 us  GPU0 GPU1\n"
      "\n"
      "Drives\n"
      "drive  capacity  read GB/s  write GB/s  NUMA\n"
      "0      2.00 TiB          3         1.5     0\n"
      "\n"
      "Symmetry: renumberings of devices that change nothing, and stage maps that differ\n"
      "                  renumberings  distinct maps\n"
      "with host copies             1              6\n"
      "without                      1              6\n"
      "\n"
      "warning: GPU1 to GPU0: 29.9 GB/s is below 60 % of 2 x 25.0 GB/s; counts of links promise "
      "more than this pair has\n");
}

TEST_F(TopologyCommand, TellsProgramsTheSame) {
  ASSERT_EQ(Run({"--preset", "dgx1_v100", "--format", "json"}), kExitDone) << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["distinct_maps"], 10'080);
  EXPECT_EQ(json["symmetry"]["with_host"]["renumberings"], 4);
  EXPECT_EQ(json["wires"][0], (std::vector<int>{0, 1, 1, 2, 2, 0, 0, 0}));
  EXPECT_EQ(json["links"].size(), 32);
  EXPECT_EQ(json["switches"][3]["devices"], (std::vector<int>{6, 7}));
  EXPECT_EQ(json["devices"][0]["copy_lanes"], 4);
  EXPECT_EQ(json["devices"][7]["numa"], 1);
  EXPECT_EQ(json["devices"][0]["egress_bytes_per_second"], 146'000'000'000);
}

TEST_F(TopologyCommand, ListsThePresetsWithoutArguments) {
  ASSERT_EQ(Run({}), kExitDone) << error_;
  EXPECT_THAT(out_, StartsWith("preset             devices  memory each  host memory"));
  EXPECT_THAT(out_,
              HasSubstr("dgx1_v100                8     32.0 GiB      477 GiB         10,080"));
  ASSERT_EQ(Run({"--format", "json"}), kExitDone) << error_;
  EXPECT_GE(nlohmann::json::parse(out_)["presets"].size(), 14);
}

TEST_F(TopologyCommand, CountsOneMapOfAFabricWhenTheHostDoesNotMatter) {
  ASSERT_EQ(Run({"--preset", "dgx2_v100"}), kExitDone) << error_;
  EXPECT_THAT(out_, HasSubstr("with host copies             294,912     70,945,875\n"
                              "without           20,922,789,888,000              1\n"));
}

TEST_F(TopologyCommand, ReadsWhatNvidiaSmiPrints) {
  const std::string file = File(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV4\t0-7\t0\n"
      "GPU1\tNV4\t X \t0-7\t0\n");
  ASSERT_EQ(Run({"--nvidia_smi", file, "--device", "a100-80", "--format", "json"}), kExitDone)
      << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["device"], "A100-80");
  EXPECT_EQ(json["devices"][0]["memory_bytes"], 80'000'000'000);
  EXPECT_EQ(json["links"][0]["bytes_per_second"], 92'000'000'000);
  EXPECT_EQ(json["notes"].size(), 1);
}

TEST_F(TopologyCommand, RefusesWhatCannotBe) {
  EXPECT_EQ(Run({"--preset", "dgx1_v1000"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: unknown topology 'dgx1_v1000'; did you mean 'dgx1_v100'?\n");
  EXPECT_EQ(Run({"--file", File("name: x\ndevices: 0\n")}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: DIR/server:2:10: devices: is 0; must be at least 1 and at most 128\n");
  EXPECT_EQ(Run({"--nccl_xml", File("<system version='1'>")}), kExitBadInput);
  EXPECT_THAT(error_, StartsWith("siphon: DIR/server:1:"));
  EXPECT_EQ(Run({"--nvidia_smi", directory_ + "/none"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: cannot read topology 'DIR/none': No such file or directory\n");
  EXPECT_EQ(Run({"--preset", "dgx1_v100", "--file", "x"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: one server at a time: give one of --preset, --file, --nvidia_smi, "
            "--nccl_xml\n");
  EXPECT_EQ(Run({"--preset", "dgx1_v100", "--device", "V100"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: --device belongs to --nvidia_smi and --nccl_xml; presets and files say what "
            "they have\n");
  EXPECT_EQ(Run({"--nvidia_smi", File("GPU0 CPU Affinity\nGPU0 X 0-7\n"), "--device", "Voodoo"}),
            kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: links of device 'Voodoo' are not known; known: P100, V100, A100, A800, H100, "
            "H200, B300\n");
  EXPECT_EQ(Run({"--probe", "--preset", "dgx1_v100"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: --probe measures this machine; leave out --preset, --file, --nvidia_smi, "
            "--nccl_xml, --device\n");
  EXPECT_EQ(Run({"--fresh"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --fresh, --copy_bytes and --output belong to --probe\n");
}

// No module is beside this program, whatever the machine has.
TEST_F(TopologyCommand, SaysInALineWhyItCannotProbe) {
  EXPECT_EQ(Run({"--probe"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: no CUDA: this build has no CUDA module, there was no CUDA toolkit when it was "
            "made; workers compute on the CPU here (pipeline.backend: cpu)\n");
}

}  // namespace
}  // namespace siphon
