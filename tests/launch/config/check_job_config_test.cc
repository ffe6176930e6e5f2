// Keys that are right each by itself, but not together.

#include "launch/config/check_job_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/config/config_fixture.h"

namespace siphon {
namespace {

TEST(CheckJobConfig, DefaultsAreAJob) {
  EXPECT_TRUE(CheckJobConfig(JobConfig(), SmallMachine()).ok());
}

TEST(CheckJobConfig, GlobalBatchIsDivisibleByMicrobatch) {
  EXPECT_EQ(Refusal("train:\n  global_batch: 30\n  microbatch: 4\n"),
            "job.yaml:2:17: train.global_batch: train.global_batch 30 is not divisible by "
            "train.microbatch 4; nearest: 28 or 32");
  EXPECT_EQ(Refusal("train:\n  microbatch: 64\n"),
            "job.yaml:2:15: train.microbatch: train.global_batch 32 is not divisible by "
            "train.microbatch 64; nearest: 64");
  JobConfig job;
  job.train.microbatch = 0;
  EXPECT_EQ(CheckJobConfig(job, {}).message(),
            "default: train.microbatch: must be at least 1 sequence");
}

TEST(CheckJobConfig, ProductsFitInto64Bits) {
  EXPECT_EQ(
      Refusal("train:\n  global_batch: 4611686018427387904\n  microbatch: 4611686018427387904\n"
              "data:\n  sequence_length: 4\n"),
      "job.yaml:5:20: data.sequence_length: train.global_batch 4611686018427387904 x "
      "data.sequence_length 4 overflows 64 bits");
  EXPECT_EQ(Refusal("train:\n  steps: 9223372036854775807\n"),
            "job.yaml:2:10: train.steps: train.steps 9223372036854775807 x train.global_batch 32 "
            "overflows 64 bits");
  EXPECT_EQ(Refusal("train:\n  global_batch: 4194304\n  microbatch: 1\n"),
            "job.yaml:2:17: train.global_batch: train.global_batch 4194304 with train.microbatch 1 "
            "makes 4194304 microbatches a step; at most 1048576");
}

TEST(CheckJobConfig, HeadsDivideTheWidth) {
  EXPECT_EQ(
      Refusal("model:\n  hidden: 100\n  heads: 3\n"),
      "job.yaml:2:11: model.hidden: model.hidden 100 is not divisible by model.heads 3; nearest: "
      "99 or 102");
  EXPECT_EQ(Refusal("model:\n  kind: mlp\n  hidden: 50\n"), "accepted");
}

// Which a schedule takes, and of how many stages, is for it to say (PlanJob).
TEST(CheckJobConfig, ChunksAreAsManyAsThereMayBeWorkers) {
  EXPECT_EQ(Refusal("pipeline:\n  stages: 6\n  chunks: 4\n"), "accepted");
  EXPECT_EQ(Refusal("pipeline:\n  stages: 6\n  chunks: 4097\n"),
            "job.yaml:3:11: pipeline.chunks: is 4097; must be at least 0 and at most 4096");
}

TEST(CheckJobConfig, TheNumberOfProcessesIsNoOptionOfMpirun) {
  for (const std::string option : {"-np", "--np", "-n", "--n", "-c"}) {
    EXPECT_EQ(
        Refusal("launch:\n  mpirun_options: [" + option + ", '3']\n"),
        "job.yaml:2:19: launch.mpirun_options: has " + option +
            ", but mpirun is told to start a process for each worker; leave it out, and write "
            "pipeline.stages for another number of them");
  }
  EXPECT_EQ(Refusal("launch:\n  mpirun_options: [-npernode, '3', --nooversubscribe]\n"),
            "accepted");
}

TEST(CheckJobConfig, ExplicitPartitionsHaveAllStages) {
  EXPECT_EQ(
      Refusal("pipeline:\n  stages: 4\n  partition: [2, 2, 2]\n"),
      "job.yaml:3:14: pipeline.partition: lists 3 stages, pipeline.stages is 4; write one number "
      "of layers for each stage");
}

TEST(CheckJobConfig, SchedulesFromFilesNeedAFile) {
  ConfigLimits limits = SmallMachine();
  limits.known.schedules.push_back("csv");
  const auto job = ParseJobConfig("pipeline: {schedule: csv}\n", "job.yaml", {}, limits);
  EXPECT_EQ(job.status(),
            absl::InvalidArgumentError("default: pipeline.schedule_file: is missing; "
                                       "pipeline.schedule csv needs the path of a file"));
}

TEST(CheckJobConfig, NcclIsForCudaDevices) {
  EXPECT_EQ(Refusal("pipeline:\n  transport: nccl\n"),
            "job.yaml:2:14: pipeline.transport: nccl moves memory of CUDA devices, but "
            "pipeline.backend is cpu; auto, shared_memory and mpi work");
}

TEST(CheckJobConfig, TopologiesFromFilesNeedAFile) {
  EXPECT_EQ(Refusal("topology:\n  source: file\n"),
            "default: topology.name: is missing; topology.source file needs the path of a topology "
            "file");
  EXPECT_EQ(Refusal("topology: {source: file, name: server.yaml}\n"), "accepted");
  EXPECT_EQ(Refusal("topology: {source: probe}\n"),
            "job.yaml:1:20: topology.source: probe measures CUDA devices, and the job's workers "
            "have none (pipeline.backend: cpu); preset and file work");
  EXPECT_EQ(Refusal("topology: {name: dgx1_v100}\n"), "accepted");
  JobConfig job;
  job.pipeline.backend = "cuda";
  job.topology = {.source = "probe", .servers = 2, .network_rate = BytesPerSecond(1)};
  EXPECT_THAT(
      std::string(CheckJobConfig(job, {}).message()),
      testing::HasSubstr("topology.source: probe measures one machine, and topology.servers is 2; "
                         "file works, with what siphon topology --probe --output FILE writes"));
}

TEST(CheckJobConfig, CapacitiesFitTheMachineAndLeaveRoom) {
  EXPECT_EQ(Refusal("memory:\n  capacity: 9GiB\n"),
            "job.yaml:2:13: memory.capacity: " + FormatBytes(Bytes(int64_t{9} << 30)) +
                " is more than this machine's memory, " + FormatBytes(Bytes(int64_t{8} << 30)) +
                "; write at most that");
  EXPECT_EQ(Refusal("memory:\n  capacity: 0B\n"),
            "job.yaml:2:13: memory.capacity: " + FormatBytes(Bytes(0)) +
                " leaves no room beside memory.reserve " + FormatBytes(Bytes(0)) +
                "; leave the key out for no limit");
  EXPECT_EQ(Refusal("memory:\n  capacity: 8GiB\n"), "accepted");
  // Of a device's memory the machine's says nothing.
  JobConfig job;
  job.pipeline.backend = "cuda";
  job.memory.capacity = {Bytes(int64_t{9} << 30)};
  EXPECT_TRUE(CheckJobConfig(job, {.machine_memory = Bytes(int64_t{8} << 30)}).ok());
}

TEST(CheckJobConfig, ChunksAreNotTooSmallToCopy) {
  EXPECT_EQ(Refusal("memory:\n  chunk: 4095B\n"),
            "job.yaml:2:10: memory.chunk: " + FormatBytes(Bytes(4095)) + " is less than " +
                FormatBytes(Bytes(4096)) + "; leave the key out for " +
                FormatBytes(Bytes(8 << 20)));
  EXPECT_EQ(Refusal("memory:\n  chunk: 4KiB\n"), "accepted");
}

TEST(CheckJobConfig, PluginsNeedALibrary) {
  EXPECT_EQ(
      Refusal("model:\n  kind: plugin\n"),
      "default: model.library: is missing; model.kind plugin needs the path of a shared object");
}

TEST(ConfigError, NamesWhereTheKeyCameFrom) {
  const auto job = ParseJobConfig("train:\n  steps: 3\n", "job.yaml", {"train.seed=4"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(ConfigError(*job, "train.steps", "too few"),
            absl::InvalidArgumentError("job.yaml:2:10: train.steps: too few"));
  EXPECT_EQ(ConfigError(*job, "train.seed", "odd"),
            absl::InvalidArgumentError("--set train.seed: odd"));
  EXPECT_EQ(ConfigError(*job, "model.layers", "too few"),
            absl::InvalidArgumentError("default: model.layers: too few"));
}

}  // namespace
}  // namespace siphon
