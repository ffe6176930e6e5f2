// What the real program says to input that it cannot use: the whole text, exit code 2, nothing on
// standard output, and nothing written.

#include <sys/resource.h>

#include <filesystem>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::MatchesRegex;

std::string KnownSchedules() {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : ScheduleRegistry()) names.push_back(entry.name);
  return absl::StrJoin(names, ", ");
}

class BadInput : public TinyJobTest {
 protected:
  // `message` without "siphon: " and the end of the line.
  void ExpectRefusal(const std::vector<std::string>& arguments, const std::string& message) {
    const ProgramEnd end = Siphon(arguments);
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_EQ(end.errors, "siphon: " + message + "\n");
    EXPECT_EQ(end.output, "");
    EXPECT_FALSE(fs::exists(PathOf("run")));
    EXPECT_TRUE(Remains().empty());
  }
  // The tiny job with one piece of its text replaced.
  std::string Edited(const std::string& from, const std::string& to) const {
    std::string text = TinyJobText();
    EXPECT_EQ(absl::StrReplaceAll({{from, to}}, &text), 1) << from;
    return WriteFile("edited.yaml", text);
  }
};

// What is missing for CUDA workers depends on the machine and on this build.
TEST_F(BadInput, WithCudaWorkersIsRefusedInALineThatNamesTheCpu) {
  const ProgramEnd end = Siphon({"train", job(), "--set", "pipeline.backend=cuda"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(
      end.errors,
      MatchesRegex("siphon: --set pipeline.backend: no CUDA: [^\n]*; workers compute on the "
                   "CPU here \\(pipeline.backend: cpu\\)\n"));
  EXPECT_EQ(end.output, "");
  EXPECT_FALSE(fs::exists(PathOf("run")));
}

struct Edit {
  const char* name;
  const char* from;
  const char* to;
  const char* message;  // after the file's name
};

// GoogleTest would print addresses, which CTest takes for a part of the test's name.
void PrintTo(const Edit& edit, std::ostream* out) { *out << edit.name; }

class EditedJobs : public BadInput, public testing::WithParamInterface<Edit> {};

TEST_P(EditedJobs, AreRefusedAtTheirPlace) {
  const std::string path = Edited(GetParam().from, GetParam().to);
  ExpectRefusal({"train", path}, path + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    OfTheFile, EditedJobs,
    testing::Values(
        Edit{"UnknownSection",
             "pipeline:", "pipelin:", ":18:1: unknown section 'pipelin'; did you mean 'pipeline'?"},
        Edit{"UnknownKey", "  layers: 4", "  layer: 4",
             ":3:3: model: unknown key 'layer'; did you mean 'layers'?"},
        Edit{"WrongType", "layers: 4", "layers: four",
             ":3:11: model.layers: is 'four'; write a whole number"},
        Edit{"WrongUnit", "heartbeat_timeout: 2s", "heartbeat_timeout: 2MiB",
             ":21:22: launch.heartbeat_timeout: '2MiB' has the unknown unit 'MiB'; known: ns, us, "
             "ms, s, min, h"},
        Edit{"DuplicateKey", "  steps: 12\n", "  steps: 12\n  steps: 13\n",
             ":14:3: train: key 'steps' stands here a second time, first in line 13; remove one "
             "of them"},
        Edit{"DuplicateSection", "launch:\n", "model:\n",
             ":20:1: section 'model' stands here a second time, first in line 1; remove one of "
             "them"},
        Edit{"Tab", "  steps: 12", "\tsteps: 12",
             ":13:1: a tab in the indentation; indent with spaces"},
        Edit{"MicrobatchZero", "microbatch: 2", "microbatch: 0",
             ":15:15: train.microbatch: is 0; must be at least 1"},
        Edit{"NegativeLearningRate", "learning_rate: 0.01", "learning_rate: -0.01",
             ":16:18: train.learning_rate: is -0.01; must be at least 0"},
        Edit{"BatchNotDivisible", "global_batch: 8", "global_batch: 7",
             ":14:17: train.global_batch: train.global_batch 7 is not divisible by "
             "train.microbatch 2; nearest: 6 or 8"},
        Edit{"MoreStagesThanLayers", "stages: 4", "stages: 7",
             ":19:11: pipeline.stages: 7 stages, but the model has 6 layers to cut; at most 6 "
             "stages work"},
        Edit{"HiddenNotDivisible", "hidden: 16", "hidden: 17",
             ":4:11: model.hidden: model.hidden 17 is not divisible by model.heads 2; nearest: 16 "
             "or 18"}),
    [](const auto& info) { return info.param.name; });

struct Override {
  const char* name;
  std::string set;      // % is the test's folder
  std::string message;  // after "--set <key>: "
};

void PrintTo(const Override& override_, std::ostream* out) { *out << override_.name; }

class Overrides : public BadInput, public testing::WithParamInterface<Override> {};

TEST_P(Overrides, AreRefusedByTheirKey) {
  WriteFile("file", "");
  WriteFile("short", "short");
  fs::create_directory(PathOf("folder"));
  const auto placed = [this](const std::string& text) {
    return absl::StrReplaceAll(text, {{"%", root()}});
  };
  std::vector<std::string> arguments = {"train", job(), "--set", placed(GetParam().set)};
  if (GetParam().set.substr(0, 9) == "data.path") {
    arguments.insert(arguments.end(), {"--set", "data.kind=text"});
  }
  if (GetParam().set.substr(0, 13) == "model.library") {
    arguments.insert(arguments.end(), {"--set", "model.kind=plugin"});
  }
  if (GetParam().set.substr(0, 22) == "pipeline.schedule_file") {
    arguments.insert(arguments.end(), {"--set", "pipeline.schedule=csv"});
  }
  const std::string key = GetParam().set.substr(0, GetParam().set.find('='));
  ExpectRefusal(arguments, absl::StrCat("--set ", key, ": ", placed(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    OnTheCommandLine, Overrides,
    testing::Values(
        Override{"Garbage", "garbage", "write --set section.key=value"},
        Override{"NoValue", "train.steps=", "is empty; write a whole number"},
        Override{"UnknownSchedule", "pipeline.schedule=zigzag",
                 absl::StrCat("'zigzag' is not known; known: ", KnownSchedules())},
        Override{"AsynchronousSchedule", "pipeline.schedule=pipedream",
                 "pipedream updates weights asynchronously, which workers cannot do: they keep one "
                 "version of the weights; it can be planned and simulated"},
        Override{"ReplicatedSchedule", "pipeline.schedule=harmony_dp",
                 "harmony_dp runs 2 replicas, but workers run one copy of the pipeline; it can be "
                 "planned and simulated"},
        Override{"NoSuchScheduleFile", "pipeline.schedule_file=%/none.csv",
                 "cannot read schedule '%/none.csv': No such file or directory"},
        Override{"StrategyNotBuilt", "memory.strategy=harmony",
                 "'harmony' is known, but not built yet; today: keep, recompute, host_swap, "
                 "d2d_swap, nvme_swap, optimizer_offload, vdnn, capacity_based, weight_offload, "
                 "l2l, mpress, auto"},
        Override{"ThrottleOfNoLinks", "topology.throttle=0.5",
                 "needs links to hold to their rates; write topology.name"},
        Override{"UnknownPrecision", "train.precision=fp61",
                 "'fp61' is not known; did you mean 'fp16'? known: fp32, bf16, fp16"},
        Override{"UnknownModel", "model.kind=gtp",
                 "'gtp' is not known; did you mean 'gpt'? known: gpt, bert, mlp, plugin; not built "
                 "yet: vgg16, resnet50, torchscript"},
        Override{"SizeBeyond64Bits", "memory.capacity=99999999999999999999B",
                 "'99999999999999999999B' does not fit into 63 bits"},
        Override{"NumberBeyond64Bits", "train.steps=99999999999999999999",
                 "'99999999999999999999' does not fit into 64 bits; write a whole number from "
                 "-9223372036854775808 to 9223372036854775807"},
        Override{"BatchBeyond64Bits", "data.sequence_length=4000000000000000000",
                 "train.global_batch 8 x data.sequence_length 4000000000000000000 overflows 64 "
                 "bits"},
        Override{"WeightsBeyond64Bits", "model.hidden=4294967296",
                 "4294967296: the size of all layers' weights overflows 64 bits"},
        Override{"EmbeddingBeyond64Bits", "model.vocabulary=9000000000000000000",
                 "9000000000000000000: the size of the token embedding overflows 64 bits"},
        Override{"TooManySamples", "data.samples=9223372036854775807",
                 "is 9223372036854775807; must be at least 1 and at most 1099511627776"},
        Override{"NoDataFile", "data.path=%/none", "%/none: No such file or directory"},
        Override{"EmptyData", "data.path=%/file", "%/file is empty"},
        Override{"DataShorterThanASequence", "data.path=%/short",
                 "%/short has 5 bytes; one sequence needs 9 (data.sequence_length 8 and the last "
                 "target)"},
        Override{"DataIsADirectory", "data.path=%/folder", "%/folder is a directory; write a file"},
        Override{"NoPlugin", "model.library=%/libnone.so",
                 "plugin %/libnone.so: there is no such file"},
        Override{"OutputBelowAFile", "output.directory=%/file/run",
                 "'%/file/run' cannot be a directory: '%/file' is not one; write another path"},
        Override{"OutputIsAFile", "output.directory=%/file",
                 "'%/file' cannot be a directory: it is not one; write another path"},
        Override{"DriveBelowAFile", "memory.nvme_directory=%/file/drive",
                 "'%/file/drive' cannot be a directory: '%/file' is not one; write another path"},
        Override{"CheckpointsBelowAFile", "checkpoint.directory=%/file/kept",
                 "'%/file/kept' cannot be a directory: '%/file' is not one; write another path"},
        Override{"NoCheckpoint", "checkpoint.resume=%/none", "%/none: no such checkpoint"},
        Override{"ForeignCheckpoint", "checkpoint.resume=%/folder",
                 "%/folder is not a Siphon checkpoint: it has no siphon.json"},
        Override{"NoInitialWeights", "model.init_from=%/none", "%/none: no such file or folder"}),
    [](const auto& info) { return info.param.name; });

struct Usage {
  const char* name;
  std::vector<std::string> arguments;
  const char* message;
};

void PrintTo(const Usage& usage, std::ostream* out) { *out << usage.name; }

class WrongUsage : public BadInput, public testing::WithParamInterface<Usage> {};

TEST_P(WrongUsage, IsRefusedWithTheNearestRightOne) {
  ExpectRefusal(GetParam().arguments, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    OfTheProgram, WrongUsage,
    testing::Values(
        Usage{"NoArguments",
              {},
              "no command given; siphon train JOB.yaml trains, siphon --help shows all"},
        Usage{"NoJob", {"train"}, "train: no job file given; siphon train JOB.yaml"},
        Usage{"MissingJob",
              {"train", "/nowhere/job.yaml"},
              "/nowhere/job.yaml: cannot be opened; write the path of a job file, such as "
              "configs/jobs/quickstart.yaml"},
        Usage{"UnknownFlag",
              {"train", "job.yaml", "--fromat", "json"},
              "train: unknown argument '--fromat'; did you mean '--format'? see siphon train "
              "--help"},
        Usage{"GenerateWithoutCheckpoint",
              {"generate", "--checkpoint", "/nowhere", "--prompt", "x"},
              "no complete checkpoint in '/nowhere'"}),
    [](const auto& info) { return info.param.name; });

// The commands that follow are a registry's.
// Of messages that are held to rates, each worker needs to know those of its device.
TEST_F(BadInput, ATopologyWithTooFewDevicesIsRefused) {
  const std::string server = WriteFile("server.yaml", R"(
name: two
devices: 2
device: V100
)");
  ExpectRefusal(
      {"train", job(), "--set", "topology.source=file", "--set", "topology.name=" + server, "--set",
       "topology.throttle=1", "--set", "pipeline.stages=3"},
      "--set topology.name: two has 2 devices for 3 workers; plan for fewer "
      "pipeline.stages, or on a larger server");
}

TEST_F(BadInput, AnUnknownCommandIsToldTheKnownOnes) {
  const ProgramEnd unknown = Siphon({"trian", "job.yaml"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors,
              MatchesRegex("siphon: unknown command 'trian'; did you mean 'train'\\? "
                           "known: train, generate[a-z_, ]*\n"));
  const ProgramEnd plan = Siphon({"plan"});
  EXPECT_EQ(plan.exit_code, 2);
  EXPECT_EQ(plan.errors, "siphon: plan needs a job file: siphon plan --config JOB.yaml\n");
}

TEST_F(BadInput, CapacityBeyondTheMachineNamesWhatItHas) {
  const ProgramEnd end = Siphon({"train", job(), "--set", "memory.capacity=900TiB"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.errors, MatchesRegex("siphon: --set memory.capacity: 900 TiB is more than this "
                                       "machine's memory, [0-9.]+ [MGT]iB; write at most that\n"));
  EXPECT_FALSE(fs::exists(PathOf("run")));
}

// mpirun that may open no more files waits for ever.
TEST_F(BadInput, TooFewOpenFilesAreNamedAndASoftLimitIsRaised) {
  const auto limited_to = [](rlim_t soft, rlim_t hard) {
    return RunOptions{.prepare = [soft, hard] {
      const rlimit limit{soft, hard};
      return setrlimit(RLIMIT_NOFILE, &limit) == 0;
    }};
  };
  const ProgramEnd few = Siphon({"train", job()}, limited_to(20, 20));
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_THAT(few.errors, MatchesRegex("siphon: mpirun needs up to [0-9]+ open files for this job, "
                                       "and the limit is 20; raise it \\(ulimit -Hn .*\n"));
  ExpectNothingLeft();
  const ProgramEnd soft = Siphon({"train", job()}, limited_to(20, 512));
  EXPECT_EQ(soft.exit_code, 0) << soft.errors;
}

TEST_F(BadInput, OptionsThatMpirunRefusesAreNamedBehindItsOwnWords) {
  const ProgramEnd end = Siphon({"train", job(), "--set", "launch.mpirun_options=[--nonsense]"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.errors,
              MatchesRegex(".*unknown option .*nonsense.*\nsiphon: launch.mpirun_options: mpirun "
                           "refused to start with --nonsense; its own words stand above\n"));
  ExpectNothingLeft();
}

TEST_F(BadInput, CapacityTooSmallIsRefusedBeforeAnyWorkerStartsWithTheSmallestChange) {
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "memory.capacity=1.42MB", "--set", "memory.strategy=keep"});
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(end.errors,
              MatchesRegex("siphon: the job does not fit: worker [0-3] needs [0-9.]+ MiB at its "
                           "peak, memory.capacity is 1.35 MiB, [0-9.]+ [KM]iB short\n  smallest "
                           "change that fits: --set [A-Za-z0-9._=]+ \\([^\n]+ on the fullest "
                           "worker\\)\n  siphon memory shows the bytes of each stage\n(  or --set "
                           "memory.strategy=[a-z]+: [^\n]+\n)"));
  EXPECT_FALSE(fs::exists(PathOf("run")));
  ExpectNothingLeft();
}

// What refuses then is the allocator: the promise does not hang on the prediction.
TEST_F(BadInput, CapacityTooSmallIsHeldByTheAllocatorWhereNobodyHasLookedBefore) {
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "memory.capacity=1.42MB", "--set", "memory.strategy=keep"},
             {.environment = {"SIPHON_INJECT_FAULT=0:0:memory.capacity:overlook"}});
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(end.errors, testing::ContainsRegex("siphon: worker [0-3] failed .* during "));
  EXPECT_THAT(end.errors,
              testing::ContainsRegex("memory is full: asked for [0-9]+ bytes, [0-9]+ bytes free "
                                     "of a capacity of 1420000 "));
  ExpectNothingLeft();
}

TEST_F(BadInput, CapacityTooSmallForAllTensorsAtOnceIsEnoughByDefault) {
  const ProgramEnd end = Siphon({"train", job(), "--set", "memory.capacity=1.42MB"});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, testing::HasSubstr("to fit into memory.capacity, "));
  ExpectNothingLeft();
}

// Whatever a search for a plan would have said, which can take a minute.
TEST_F(BadInput, ThatIsKnownBeforeAPlanIsSaidBefore) {
  WriteFile("file", "no folder");
  for (const std::string& setting :
       {"checkpoint.resume=" + PathOf("none"), "model.init_from=" + PathOf("none"),
        "output.directory=" + PathOf("file")}) {
    const ProgramEnd end =
        Siphon({"train", job(), "--set", "memory.capacity=10kB", "--set", setting});
    EXPECT_EQ(end.exit_code, 2) << end.errors;
    EXPECT_THAT(end.errors, testing::Not(testing::HasSubstr("does not fit")));
    EXPECT_THAT(end.errors, testing::HasSubstr(setting.substr(0, setting.find('='))));
  }
  ExpectNothingLeft();
}

TEST_F(BadInput, CapacityTooSmallForAnythingNamesAChangeWithWhichTheJobRuns) {
  const std::vector<std::string> command = {"train", job(), "--set", "memory.capacity=10kB"};
  const ProgramEnd end = Siphon(command);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(end.errors,
              testing::ContainsRegex("\n  to keep everything: --set memory.capacity=[0-9]+KiB "));
  EXPECT_THAT(end.errors, testing::HasSubstr("\n  memory.strategy auto is not enough: "));
  ExpectNothingLeft();
  const std::regex change("\n  smallest change that fits: --set (memory.capacity=[0-9]+KiB)  \\(");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(end.errors, found, change)) << end.errors;
  const ProgramEnd changed = Siphon({"train", job(), "--set", found[1].str()});
  EXPECT_EQ(changed.exit_code, 0) << changed.errors;
}

TEST_F(BadInput, MegabytesOfNestedListsAreRefusedAtOnce) {
  const std::string large = WriteFile("nested.yaml", "model: " + std::string(10'000'000, '['));
  ExpectRefusal({"train", large}, large + ": 1048577 bytes; a job file has at most 1048576");
  const std::string deep = WriteFile("deep.yaml", "model: " + std::string(500'000, '['));
  const ProgramEnd end = Siphon({"train", deep});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.errors, MatchesRegex("siphon: " + deep +
                                       ":1:[0-9]+: nested deeper than [0-9]+ levels; a job file "
                                       "has sections, keys and lists\n"));
}

TEST_F(BadInput, ByteOrderMarkAndCarriageReturnsAreAccepted) {
  const std::string text = absl::StrReplaceAll(TinyJobText(), {{"\n", "\r\n"}});
  const ProgramEnd end =
      Siphon({"train", WriteFile("dos.yaml", "\xEF\xBB\xBF" + text), "--set", "train.steps=0"});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  ExpectNothingLeft();
}

}  // namespace
}  // namespace siphon
