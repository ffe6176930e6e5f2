// Files about servers and profiles that are wrong: exit code 2 and the place, whichever command
// reads them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

struct BadFile {
  std::string name;
  std::string text;
  std::string error;  // behind the file's path
};

void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

std::string NameOf(const testing::TestParamInfo<BadFile>& info) { return info.param.name; }

constexpr char kJob[] =
    "model: {kind: mlp, layers: 1, hidden: 8}\n"
    "data: {kind: synthetic}\n"
    "train: {global_batch: 8, microbatch: 4}\n"
    "pipeline: {stages: 1}\n";

// What only siphon train loads.
TEST_F(CommandTest, LayersOfAPluginAreRefusedByNameByAllThatPlan) {
  const std::string job = WriteFile("job.yaml",
                                    "model: {kind: plugin, library: libmine.so}\n"
                                    "data: {kind: synthetic}\n");
  for (const std::string command : {"plan", "memory", "simulate"}) {
    const CommandEnd end = RunRegisteredCommand(command, {"--config", job});
    EXPECT_EQ(end.code, kExitBadInput) << command;
    EXPECT_EQ(end.out, "") << command;
    EXPECT_EQ(end.err,
              "siphon: " + job +
                  ":1:15: model.kind: plugin: only siphon train and siphon profile load libmine.so "
                  "(model.library) and know its layers; cut what siphon profile measures with "
                  "siphon partition --profile, or write a kind that is planned: gpt, bert, mlp, "
                  "vgg16, resnet50\n")
        << command;
    const CommandEnd script =
        RunRegisteredCommand(command, {"--config", job, "--set", "model.kind=torchscript"});
    EXPECT_EQ(script.code, kExitBadInput) << command;
    EXPECT_EQ(script.err,
              "siphon: --set model.kind: 'torchscript' is known, but not built yet; today: gpt, "
              "bert, mlp, vgg16, resnet50\n")
        << command;
  }
}

class BadServer : public CommandTest, public testing::WithParamInterface<BadFile> {};

TEST_P(BadServer, IsRefusedWithItsPlaceByAllThatReadIt) {
  const std::string job = WriteFile("job.yaml", kJob);
  const std::string file = WriteFile("server", GetParam().text);
  for (const auto& [command, flags] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"topology", {"--file", file}},
           {"plan", {job, "--set", "topology.source=file", "--set", "topology.name=" + file}},
           {"memory", {job, "--set", "topology.source=file", "--set", "topology.name=" + file}}}) {
    const CommandEnd end = RunRegisteredCommand(command, flags);
    EXPECT_EQ(end.code, kExitBadInput) << command;
    EXPECT_EQ(end.out, "") << command;
    EXPECT_THAT(end.err, testing::HasSubstr(file + GetParam().error)) << command;
  }
}

const char kServer[] = "name: x\ndevices: 2\n";

INSTANTIATE_TEST_SUITE_P(
    Files, BadServer,
    testing::Values(
        BadFile{"Empty", "", ":1:1: is empty; write a topology, beginning with 'name:'"},
        BadFile{"NoDevices", "name: x\n", ":1:1: a topology has no 'devices'; it needs one"},
        BadFile{"DriveOfNoNode",
                std::string(kServer) +
                    "drives:\n  - {capacity: 1TB, read: 1GB/s, write: 1GB/s, numa: 9}\n",
                ":4:54: numa: is 9, but the server has node 0 only (numa_nodes lists them)"},
        BadFile{"DriveThatReadsNothing",
                std::string(kServer) + "drives: [{capacity: 1TB, read: 0GB/s, write: 1GB/s}]\n",
                ":3:32: read: is 0; write a rate above 0"},
        BadFile{
            "SwitchWithoutAWay",
            std::string(kServer) + "switches: [{devices: [0], to_host: 0GB/s, from_host: 1GB/s}]\n",
            ":3:36: to_host: is 0; write a rate above 0"},
        BadFile{"AsymmetricMatrix", "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV1\t X \n",
                ":3:6: row GPU1, column 0: is NV1, but row GPU0, column 1 is NV2; connections are "
                "the same both ways"},
        BadFile{"HalfAMatrix", "\tGPU0\tGPU1\nGPU0\t X \tNV2\n",
                ":1:2: has 1 rows for 2 devices; give the whole matrix"},
        BadFile{"MatrixWithoutHeader", "GPU0\t X \tNV2\nGPU1\tNV2\t X \n",
                ":1:1: has no line that begins with GPU0 GPU1; give the text of nvidia-smi topo "
                "-m"},
        BadFile{"BrokenXml", "<system version='1'><cpu>\n",
                ":1:26: not XML: Start-end tags mismatch"},
        BadFile{"XmlOfSomethingElse", "<html/>\n",
                ":1:1: has no <system>; give the file that NCCL_TOPO_DUMP_FILE names"},
        BadFile{"XmlWithoutDevices", "<system version='1'><cpu numaid='0'/></system>\n",
                ":1:1: <system> has no <gpu>; a topology has devices"}),
    NameOf);

class BadProfile : public CommandTest, public testing::WithParamInterface<BadFile> {};

TEST_P(BadProfile, IsRefusedWithItsPlaceByAllThatReadIt) {
  const std::string job = WriteFile("job.yaml", kJob);
  const std::string file = WriteFile("profile", GetParam().text);
  for (const auto& [command, flags] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"plan", {job, "--profile", file}},
           {"memory", {job, "--profile", file}},
           {"simulate", {"--config", job, "--profile", file}}}) {
    const CommandEnd end = RunRegisteredCommand(command, flags);
    EXPECT_EQ(end.code, kExitBadInput) << command;
    EXPECT_EQ(end.out, "") << command;
    EXPECT_THAT(end.err, testing::StartsWith("siphon: " + file + GetParam().error)) << command;
  }
}

// The model's layers are embedding, hidden.0 and output.
std::string Profile(const std::vector<std::string>& layers) {
  std::string text = "microbatch: 4\nlayers:\n";
  for (const std::string& layer : layers) text += "  - {" + layer + "}\n";
  return text;
}

std::string Timed(const std::string& name) {
  return "name: " + name + ", forward: 1us, whole_backward: 2us, optimizer: 1us";
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadProfile,
    testing::Values(
        BadFile{"NoLayers", "microbatch: 4\n", ":1:1: a profile has no 'layers'; it needs one"},
        BadFile{"EmptyLayers", "microbatch: 4\nlayers: []\n",
                ":2:9: layers: there are none; write a list of "},
        BadFile{"NoForward", Profile({"name: embedding, optimizer: 1us"}),
                ":3:5: layer 'embedding' has no 'forward'; write what "},
        BadFile{"MissingLayer", Profile({Timed("embedding"), Timed("output")}),
                ":4:5: the profile has 2 layers, the model 3: 'hidden.0' is missing before "
                "'output'"},
        BadFile{"OtherLayer", Profile({Timed("embedding"), Timed("conv"), Timed("output")}),
                ":4:5: layer 1 of the profile is 'conv', of the model 'hidden.0'"},
        BadFile{"NoOptimizer",
                Profile({Timed("embedding"), "name: hidden.0, forward: 1us", Timed("output")}),
                ":4:5: layer 'hidden.0' has no 'optimizer', and "},
        BadFile{"NoOptimizerOfParameters",
                Profile({"name: embedding, forward: 1us, parameters: 1KiB"}),
                ":3:5: layer 'embedding' has parameters, but no 'optimizer'; write what an update "
                "of them takes"},
        BadFile{"OtherKind",
                "model: gpt\n" + Profile({Timed("embedding"), Timed("hidden.0"), Timed("output")}),
                ":1:8: the profile is of a model of kind 'gpt', the job's is 'mlp'"},
        BadFile{"NegativeBytes", Profile({"name: embedding, parameters: -1B, optimizer: 1us"}),
                ":3:35: parameters: '-1B' is negative"}),
    NameOf);

}  // namespace
}  // namespace siphon
