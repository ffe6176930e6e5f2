#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "launch/process/exit_codes.h"
#include "launch/topology/topology_file.h"
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
      "drives: [{capacity: 2TiB, read: 3GB/s, write: 1.5GB/s, latency: 80us}]\n");
  ASSERT_EQ(Run({"--file", file}), kExitDone) << error_;
  EXPECT_EQ(
      out_,
      "DIR/server: three cards\n"
      "\n"
      "Connections (NV#: NVLinks, PIX: one PCIe switch, PXB: several, PHB: a host bridge,\n"
      "NODE: one NUMA node, SYS: two, ?: not known)\n"
      "      GPU0  GPU1  GPU2\n"
      "GPU0     X   NV2     ?\n"
      "GPU1   NV2     X     ?\n"
      "GPU2     ?     ?     X\n"
      "\n"
      "Rate of one large copy from row to column, GB/s (-: through the host)\n"
      "      GPU0  GPU1  GPU2\n"
      "GPU0     X  48.4     -\n"
      "GPU1  29.9     X     -\n"
      "GPU2     -     -     X\n"
      "\n"
      "Devices (V100; -: not known; copy engines: one_per_peer)\n"
      "device    memory  all out GB/s  all in GB/s  copy lanes  switch  NUMA\n"
      "GPU0    16.0 GiB            50            -           1       0     -\n"
      "GPU1    16.0 GiB            50            -           1       0     -\n"
      "GPU2    16.0 GiB            50            -           0       -     -\n"
      "\n"
      "host memory  64.0 GiB\n"
      "\n"
      "PCIe switches: their devices share one way to the host, GB/s\n"
      "switch  to host  from host  to, both run  from, both run  latency  devices\n"
      "0            12         11             9        as alone  9.00 us  GPU0 GPU1\n"
      "\n"
      "Drives\n"
      "drive  capacity  read GB/s  write GB/s  latency  NUMA\n"
      "0      2.00 TiB          3         1.5  80.0 us     0\n"
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
  EXPECT_EQ(json["connections"][0],
            (std::vector<std::string>{"X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"}));
  EXPECT_EQ(json["devices"][0]["egress_bytes_per_second"], 146'000'000'000);
  ASSERT_EQ(Run({"--preset", "dgx1_v100_nvme", "--format", "json"}), kExitDone) << error_;
  const auto drive = nlohmann::json::parse(out_)["drives"][1];
  EXPECT_EQ(drive["write_bytes_per_second"], 1'500'000'000);
  EXPECT_EQ(drive["latency_ns"], 100'000);
  EXPECT_EQ(drive["numa"], 1);
}

// Four devices of one node, whose two drives they take in turn.
TEST_F(TopologyCommand, TellsMapsApartByTheDrivesThatDevicesUse) {
  const std::string file = File(
      "name: four cards\n"
      "device: H100\n"
      "devices: 4\n"
      "copy_engines: one_for_all_peers\n"
      "fabric_wires: 18\n"
      "wire_rate: 20.8GB/s\n"
      "drives: [{capacity: 2TB, read: 3GB/s, write: 2GB/s}, {capacity: 2TB, read: 3GB/s, write: "
      "1GB/s}]\n");
  ASSERT_EQ(Run({"--file", file}), kExitDone) << error_;
  EXPECT_THAT(out_, HasSubstr("with host copies             4              6\n"
                              "without                     24              1\n"));
}

TEST_F(TopologyCommand, ListsThePresetsWithoutArguments) {
  ASSERT_EQ(Run({}), kExitDone) << error_;
  EXPECT_THAT(out_, StartsWith("preset             devices  memory each  host memory"));
  EXPECT_THAT(out_,
              HasSubstr("dgx1_v100                8     32.0 GiB      477 GiB         10,080"));
  // Names are read from the left.
  EXPECT_THAT(out_, HasSubstr("  distinct maps  server\n"));
  EXPECT_THAT(out_, HasSubstr("         10,080  NVIDIA DGX-1 (V100-SXM2), hybrid cube mesh\n"));
  ASSERT_EQ(Run({"--format", "json"}), kExitDone) << error_;
  const auto presets = nlohmann::json::parse(out_)["presets"];
  EXPECT_GE(presets.size(), 15);
  for (const auto& preset : presets) EXPECT_GE(preset["distinct_maps"], 1) << preset;
}

TEST_F(TopologyCommand, SaysOfEachPresetHowManyMapsDifferAndWhatIsAssumed) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    SCOPED_TRACE(preset.name);
    ASSERT_EQ(Run({"--preset", std::string(preset.name)}), kExitDone) << error_;
    EXPECT_THAT(out_, HasSubstr("  renumberings  distinct maps\n"));
    EXPECT_THAT(out_, HasSubstr("\nSource: "));
    EXPECT_THAT(out_, testing::Not(HasSubstr("host memory  not known")));
    const bool assumes = absl::StrContains(preset.text, "ASSUMED");
    EXPECT_EQ(absl::StrContains(out_, "ASSUMED"), assumes);
  }
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
  EXPECT_EQ(json["devices"][0]["memory_bytes"], int64_t{80} << 30);
  EXPECT_EQ(json["links"][0]["bytes_per_second"], 92'000'000'000);
  EXPECT_EQ(json["notes"].size(), 3);
}

// Words that are known are nvidia-smi's own; no guess stands for what is not told.
TEST_F(TopologyCommand, ShowsPathsAsFarAsTheyAreKnown) {
  const std::string file = File(
      "name: four boards\n"
      "devices: 4\n"
      "pcie_paths:\n"
      "  - [X, PXB, PHB, SYS]\n"
      "  - [PXB, X, NODE, SYS]\n"
      "  - [PHB, NODE, X, unknown]\n"
      "  - [SYS, SYS, unknown, X]\n");
  ASSERT_EQ(Run({"--file", file}), kExitDone) << error_;
  EXPECT_THAT(out_, HasSubstr("      GPU0  GPU1  GPU2  GPU3\n"
                              "GPU0     X   PXB   PHB   SYS\n"
                              "GPU1   PXB     X  NODE   SYS\n"
                              "GPU2   PHB  NODE     X     ?\n"
                              "GPU3   SYS   SYS     ?     X\n"));
  ASSERT_EQ(Run({"--file", file, "--format", "json"}), kExitDone) << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["connections"][2], (std::vector<std::string>{"PHB", "NODE", "X", "?"}));
  EXPECT_TRUE(json["devices"][0]["numa"].is_null());
}

constexpr char kTwoCards[] =
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\t0-7\t0\n"
    "GPU1\tNV4\t X \t0-7\t0\n";
constexpr char kTwoCardsXml[] =
    "<system version=\"1\"><cpu numaid=\"0\">"
    "<pci busid=\"0000:1a:00.0\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"70\">"
    "<nvlink target=\"0000:1b:00.0\" count=\"2\" tclass=\"0x030200\"/></gpu></pci>"
    "<pci busid=\"0000:1b:00.0\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"70\">"
    "<nvlink target=\"0000:1a:00.0\" count=\"2\" "
    "tclass=\"0x030200\"/></gpu></pci></cpu></system>\n";

TEST_F(TopologyCommand, NamesAServerOnceWhateverItsFile) {
  ASSERT_EQ(Run({"--nvidia_smi", File(kTwoCards)}), kExitDone) << error_;
  EXPECT_THAT(out_, StartsWith("DIR/server: 2 devices by nvidia-smi topo -m, V100 and rates "
                               "ASSUMED\n\n"));
  EXPECT_THAT(out_, HasSubstr("\nASSUMED: rates are those of such links elsewhere, not measured on "
                              "this server\n"));
  ASSERT_EQ(Run({"--nccl_xml", File(kTwoCardsXml)}), kExitDone) << error_;
  EXPECT_THAT(out_, StartsWith("DIR/server: 2 x V100 by NCCL's XML, rates ASSUMED\n\n"));
  // The same without saying who wrote it.
  const std::string shown = out_;
  ASSERT_EQ(Run({"--file", File(kTwoCardsXml)}), kExitDone) << error_;
  EXPECT_EQ(out_, shown);
}

TEST_F(TopologyCommand, WritesWhatOtherProgramsTellAsATopologyFile) {
  const std::string output = directory_ + "/server.yaml";
  for (const char* flag : {"--nvidia_smi", "--nccl_xml"}) {
    const std::string file = File(std::string(flag) == "--nccl_xml" ? kTwoCardsXml : kTwoCards);
    ASSERT_EQ(Run({flag, file, "--device", "V100-32", "--output", output, "--format", "json"}),
              kExitDone)
        << error_;
    auto told = nlohmann::json::parse(out_);
    EXPECT_THAT(FileText("server.yaml"), HasSubstr("# ASSUMED: rates are those of such links"));
    ASSERT_EQ(Run({"--file", output, "--format", "json"}), kExitDone) << error_;
    auto read = nlohmann::json::parse(out_);
    for (auto* json : {&told, &read}) {
      json->erase("source");
      json->erase("notes");
    }
    EXPECT_EQ(read, told);
  }
  EXPECT_EQ(Run({"--nvidia_smi", File(kTwoCards), "--output", output}), kExitBadInput);
  EXPECT_THAT(error_, StartsWith("siphon: --output: the devices' memory is not told; give --device "
                                 "(GTX-1080Ti, P100, "));
  EXPECT_EQ(Run({"--preset", "dgx_a100", "--output", output}), kExitBadInput);
  EXPECT_EQ(
      error_,
      "siphon: --output belongs to --probe, --nvidia_smi and --nccl_xml; presets and topology "
      "files are files already\n");
  EXPECT_EQ(Run({"--output", output}), kExitBadInput);
}

// Straight from what nvidia-smi or NCCL wrote, and from the file made of it, alike.
TEST_F(TopologyCommand, MakesServersThatJobsArePlannedFor) {
  const std::string job = WriteFile("job.yaml",
                                    "model: {kind: gpt, layers: 4, hidden: 64, heads: 4}\n"
                                    "data: {kind: synthetic, sequence_length: 32}\n"
                                    "train: {global_batch: 16, microbatch: 2}\n"
                                    "pipeline: {stages: 2, backend: cuda}\n"
                                    "topology: {source: file, name: none}\n");
  const auto plan = [&](const std::string& file, const std::string& more) {
    std::vector<std::string> flags = {job, "--set", "topology.name=" + file, "--format", "json"};
    if (!more.empty()) flags.insert(flags.end(), {"--set", more});
    const CommandEnd end = RunRegisteredCommand("plan", flags);
    error_ = WithoutDirectory(end.err);
    EXPECT_EQ(end.code, kExitDone) << end.err;
    auto json = nlohmann::json::parse(end.out, nullptr, /*allow_exceptions=*/false);
    json.erase("planning_seconds");
    return json;
  };
  const std::string list = "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-1)\n";
  const std::string output = directory_ + "/server.yaml";
  struct Told {
    std::string text;
    std::string device;    // as the text has it
    std::string capacity;  // where it has no memory
  };
  for (const Told& told : {Told{list + kTwoCards, "V100-32", ""},
                           Told{kTwoCardsXml, "V100", "memory.capacity=16GiB"}}) {
    const std::string file = WriteFile("told", told.text);
    ASSERT_EQ(Run({"--file", file, "--device", told.device, "--output", output}), kExitDone)
        << error_;
    const auto direct = plan(file, told.capacity);
    EXPECT_EQ(direct["fits"], true);
    EXPECT_EQ(direct["costs"], "calculated for " + told.device);
    EXPECT_EQ(direct, plan(output, told.capacity));
  }
  const CommandEnd unknown =
      RunRegisteredCommand("plan", {job, "--set", "topology.name=" + WriteFile("told", kTwoCards)});
  EXPECT_EQ(unknown.code, kExitBadInput);
  EXPECT_THAT(unknown.err, HasSubstr("does not tell the devices' memory; write memory.capacity"));
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
            "siphon: links of device 'Voodoo' are not known; known: P100, GTX-1080Ti, V100, A100, "
            "A800, H100, H200, B300\n");
  EXPECT_EQ(Run({"--probe", "--preset", "dgx1_v100"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: --probe measures this machine; leave out --preset, --file, --nvidia_smi, "
            "--nccl_xml, --device\n");
  EXPECT_EQ(Run({"--fresh"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --fresh and --copy_bytes belong to --probe\n");
  EXPECT_EQ(Run({"--file", File("name: x\ndevices: 1\n"), "--device", "V100"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: DIR/server: is a topology file, which says itself what devices it has\n");
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
