// What a job file means, and how a wrong key or value is refused.

#include "launch/config/load_job_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/launch/config/config_fixture.h"

namespace siphon {
namespace {

TEST(LoadJobConfig, ReadsEveryTypeOfValue) {
  const auto job = ParseJobConfig(
      "# a job\n"
      "model:\n"
      "  kind: bert   # with a comment\n"
      "  tie_embeddings: false\n"
      "  dropout: 1e-1\n"
      "data: {path: \"a b.txt\", sequence_length: 32}\n"
      "pipeline:\n"
      "  stages: 3\n"
      "  partition: [2, 1, 3]\n"
      "launch:\n"
      "  heartbeat_timeout: 2s\n"
      "  stall_timeout: 0s\n"
      "  mpirun_options: [--tag-output, \"-x A=1\"]\n"
      "memory:\n"
      "  capacity:\n"
      "    - 512MiB\n"
      "    - 1GB\n"
      "    - 1048576B\n",
      "job.yaml", {}, SmallMachine());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->model.kind, "bert");
  EXPECT_FALSE(job->model.tie_embeddings);
  EXPECT_EQ(job->model.dropout, 0.1);
  EXPECT_EQ(job->data.path, "a b.txt");
  EXPECT_EQ(job->data.sequence_length, 32);
  EXPECT_EQ(job->pipeline.partition, "");
  EXPECT_EQ(job->pipeline.partition_layers, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(job->launch.heartbeat_timeout, Nanos(2'000'000'000));
  EXPECT_EQ(job->launch.stall_timeout, Nanos(0));
  EXPECT_EQ(job->launch.mpirun_options, (std::vector<std::string>{"--tag-output", "-x A=1"}));
  EXPECT_EQ(job->memory.capacity,
            (std::vector<Bytes>{Bytes(536870912), Bytes(1000000000), Bytes(1048576)}));
  EXPECT_EQ(job->train, TrainConfig());
  EXPECT_EQ(job->origins.at("model.kind"), "job.yaml:3:9");
  EXPECT_EQ(job->origins.at("data.sequence_length"), "job.yaml:6:42");
  EXPECT_FALSE(job->origins.contains("train.steps"));
}

TEST(LoadJobConfig, OneCapacityHoldsForAllWorkers) {
  const auto job = ParseJobConfig("pipeline: {stages: 4}\nmemory: {capacity: 1GiB}\n", "job.yaml",
                                  {}, SmallMachine());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->memory.capacity, std::vector<Bytes>{Bytes(1 << 30)});
}

TEST(LoadJobConfig, SectionsThatAreCommentedOutAreDefaults) {
  const auto job =
      ParseJobConfig("model:\n#  kind: bert\ntrain:\n  steps: 5\n", "job.yaml", {}, SmallMachine());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->model, ModelConfig());
  EXPECT_EQ(job->train.steps, 5);
}

TEST(LoadJobConfig, OverridesGoThroughTheSameTable) {
  const auto job = ParseJobConfig(
      "train:\n  steps: 5\n", "job.yaml",
      {"train.steps=6", "train.steps=7", "pipeline.stages=2", "pipeline.partition=[1, 4]",
       "data.path=odd: name #1.txt", "memory.capacity=1GiB", "train.clip_norm=0"},
      SmallMachine());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->train.steps, 7);
  EXPECT_EQ(job->train.clip_norm, 0);
  EXPECT_EQ(job->pipeline.partition_layers, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(job->data.path, "odd: name #1.txt");
  EXPECT_EQ(job->origins.at("train.steps"), "--set train.steps");
}

TEST(LoadJobConfig, AnOverriddenPartitionReplacesTheExplicitOne) {
  const auto job =
      ParseJobConfig("pipeline:\n  partition: [5]\n", "job.yaml",
                     {"pipeline.partition=balanced", "pipeline.stages=2"}, SmallMachine());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->pipeline.partition, "balanced");
  EXPECT_TRUE(job->pipeline.partition_layers.empty());
}

TEST(LoadJobConfig, RefusesWrongOverrides) {
  const std::string job = "train: {steps: 1}\n";
  EXPECT_EQ(Refusal(job, {"train.steps"}), "--set train.steps: write --set section.key=value");
  EXPECT_EQ(Refusal(job, {"steps=3"}), "--set steps=3: write --set section.key=value");
  EXPECT_EQ(Refusal(job, {"trian.steps=3"}),
            "--set trian.steps: unknown section 'trian'; did you mean 'train'?");
  EXPECT_EQ(Refusal(job, {"train.stepps=3"}),
            "--set train.stepps: train: unknown key 'stepps'; did you mean 'steps'?");
  EXPECT_EQ(Refusal(job, {"train.steps=few"}), "--set train.steps: is 'few'; write a whole number");
  EXPECT_EQ(Refusal(job, {"train.steps="}), "--set train.steps: is empty; write a whole number");
  EXPECT_EQ(Refusal(job, {"data.path="}),
            "--set data.path: is empty; write a text, or leave the key out");
  EXPECT_EQ(Refusal(job, {"train.microbatch=5"}),
            "--set train.microbatch: train.global_batch 32 is not divisible by "
            "train.microbatch 5; nearest: 30 or 35");
}

TEST(LoadJobConfig, NamesTheNearestSection) {
  EXPECT_EQ(Refusal("model:\n  kind: gpt\npipline:\n  stages: 2\n"),
            "job.yaml:3:1: unknown section 'pipline'; did you mean 'pipeline'?");
  EXPECT_EQ(Refusal("learning_rate: 3\n"),
            "job.yaml:1:1: unknown section 'learning_rate'; it is a key, write it as "
            "train.learning_rate");
  EXPECT_EQ(Refusal("zebra: {}\n"),
            "job.yaml:1:1: unknown section 'zebra'; known: model, data, train, pipeline, launch, "
            "memory, topology, checkpoint, output");
}

TEST(LoadJobConfig, NamesTheNearestKey) {
  EXPECT_EQ(Refusal("train:\n  step: 3\n"),
            "job.yaml:2:3: train: unknown key 'step'; did you mean 'steps'?");
  EXPECT_EQ(Refusal("train:\n  learning-rate: 3\n"),
            "job.yaml:2:3: train: unknown key 'learning-rate'; did you mean 'learning_rate'?");
  EXPECT_EQ(Refusal("train:\n  setps: 3\n"),
            "job.yaml:2:3: train: unknown key 'setps'; did you mean 'steps'?");
  EXPECT_EQ(
      Refusal("train:\n  sequence_length: 3\n"),
      "job.yaml:2:3: train: unknown key 'sequence_length'; did you mean data.sequence_length?");
  EXPECT_EQ(Refusal("launch:\n  zebra: 3\n"),
            "job.yaml:2:3: launch: unknown key 'zebra'; known: heartbeat_timeout, stall_timeout, "
            "mpirun_options");
}

TEST(LoadJobConfig, CutsLongNamesInMessages) {
  EXPECT_EQ(Refusal("launch:\n  " + std::string(900, 'z') + ": 3\n"),
            "job.yaml:2:3: launch: unknown key '" + std::string(60, 'z') +
                "...'; known: heartbeat_timeout, stall_timeout, mpirun_options");
}

TEST(LoadJobConfig, RefusesDuplicates) {
  EXPECT_EQ(
      Refusal("train:\n  steps: 3\n  seed: 1\n  steps: 4\n"),
      "job.yaml:4:3: train: key 'steps' stands here a second time, first in line 2; remove one "
      "of them");
  EXPECT_EQ(
      Refusal("train:\n  steps: 3\nmodel:\n  layers: 2\ntrain:\n  seed: 4\n"),
      "job.yaml:5:1: section 'train' stands here a second time, first in line 1; remove one of "
      "them");
}

TEST(LoadJobConfig, RefusesWrongTypes) {
  EXPECT_EQ(Refusal("train:\n  steps: many\n"),
            "job.yaml:2:10: train.steps: is 'many'; write a whole number");
  EXPECT_EQ(Refusal("train:\n  steps: 1.5\n"),
            "job.yaml:2:10: train.steps: is '1.5'; write a whole number");
  EXPECT_EQ(Refusal("train:\n  steps: 010\n"),
            "job.yaml:2:10: train.steps: is '010'; write a whole number");
  EXPECT_EQ(Refusal("train:\n  steps: 0x10\n"),
            "job.yaml:2:10: train.steps: is '0x10'; write a whole number");
  EXPECT_EQ(Refusal("train:\n  steps: \"10\"\n"),
            "job.yaml:2:10: train.steps: is the text '10'; write a whole number, not in quotes");
  EXPECT_EQ(Refusal("train:\n  steps: [10]\n"),
            "job.yaml:2:10: train.steps: is a list; write a whole number");
  EXPECT_EQ(Refusal("train:\n  steps: {a: 10}\n"),
            "job.yaml:2:10: train.steps: is a section; write a whole number");
  EXPECT_EQ(Refusal("train:\n  steps:\n  seed: 1\n"),
            "job.yaml:2:3: train.steps: is empty; write a whole number");
  EXPECT_EQ(Refusal("model:\n  tie_embeddings: yes\n"),
            "job.yaml:2:19: model.tie_embeddings: is 'yes'; write true or false");
  EXPECT_EQ(Refusal("model:\n  tie_embeddings: True\n"),
            "job.yaml:2:19: model.tie_embeddings: is 'True'; write true or false");
  EXPECT_EQ(Refusal("data:\n  path: [a]\n"), "job.yaml:2:9: data.path: is a list; write a text");
  EXPECT_EQ(Refusal("data:\n  path: \"\"\n"),
            "job.yaml:2:9: data.path: is empty; write a text, or leave the key out");
  EXPECT_EQ(Refusal("data:\n  path: \"a\\0b\"\n"),
            "job.yaml:2:9: data.path: the text 'a\\x00b' has a control character; remove it");
  EXPECT_EQ(Refusal("train: 5\n"),
            "job.yaml:1:8: train: is '5'; write 'key: value' lines under 'train:'");
  EXPECT_EQ(Refusal("pipeline:\n  partition: [3, x]\n"),
            "job.yaml:2:14: pipeline.partition: item 2: is 'x'; write a whole number");
  EXPECT_EQ(Refusal("pipeline:\n  partition: []\n"),
            "job.yaml:2:14: pipeline.partition: is an empty list; write the layers of each stage");
}

TEST(LoadJobConfig, RefusesNumbersOutOfRange) {
  EXPECT_EQ(Refusal("model:\n  hidden: 9223372036854775808\n"),
            "job.yaml:2:11: model.hidden: '9223372036854775808' does not fit into 64 bits; write a "
            "whole number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(Refusal("train:\n  learning_rate: 1e999\n"),
            "job.yaml:2:18: train.learning_rate: '1e999' does not fit into a 64-bit floating-point "
            "number");
  EXPECT_EQ(Refusal("train:\n  learning_rate: nan\n"),
            "job.yaml:2:18: train.learning_rate: is 'nan'; write a finite number");
  EXPECT_EQ(Refusal("train:\n  learning_rate: .inf\n"),
            "job.yaml:2:18: train.learning_rate: is '.inf'; write a number");
  EXPECT_EQ(Refusal("train:\n  learning_rate: -1e-3\n"),
            "job.yaml:2:18: train.learning_rate: is -0.001; must be at least 0");
  EXPECT_EQ(Refusal("train:\n  microbatch: 0\n"),
            "job.yaml:2:15: train.microbatch: is 0; must be at least 1");
  EXPECT_EQ(Refusal("train:\n  steps: -1\n"),
            "job.yaml:2:10: train.steps: is -1; must be at least 0");
  EXPECT_EQ(Refusal("train:\n  clip_norm: -0.5\n"),
            "job.yaml:2:14: train.clip_norm: is -0.5; must be at least 0");
  EXPECT_EQ(Refusal("data:\n  validation_fraction: 1\n"),
            "job.yaml:2:24: data.validation_fraction: is 1; must be at least 0 and below 1");
  EXPECT_EQ(Refusal("model:\n  dropout: 1.0\n"),
            "job.yaml:2:12: model.dropout: is 1; must be at least 0 and below 1");
  EXPECT_EQ(Refusal("pipeline:\n  stages: 0\n"),
            "job.yaml:2:11: pipeline.stages: is 0; must be at least 1 and at most 4096");
  EXPECT_EQ(Refusal("pipeline:\n  partition: [3, 0]\n"),
            "job.yaml:2:14: pipeline.partition: is 0; must be at least 1");
  EXPECT_EQ(Refusal("launch:\n  heartbeat_timeout: 0s\n"),
            "job.yaml:2:22: launch.heartbeat_timeout: is 0ns; must be at least 1ns");
}

TEST(LoadJobConfig, RefusesMissingAndWrongUnits) {
  // The units' own words are ParseBytes' and ParseNanos'; the place and the key are ours.
  for (const char* size : {"1024", "5s", "12 parsecs", "-1GiB", "99999999999GiB", "NaN MiB"}) {
    const std::string text = std::string("memory:\n  capacity: ") + size + "\n";
    const std::string problem(ParseBytes(size).status().message());
    EXPECT_FALSE(problem.empty()) << size;
    EXPECT_EQ(Refusal(text), "job.yaml:2:13: memory.capacity: " + problem);
  }
  for (const char* time : {"20", "20GB", "-1s"}) {
    const std::string text = std::string("launch:\n  heartbeat_timeout: ") + time + "\n";
    const std::string problem(ParseNanos(time).status().message());
    EXPECT_FALSE(problem.empty()) << time;
    EXPECT_EQ(Refusal(text), "job.yaml:2:22: launch.heartbeat_timeout: " + problem);
  }
  EXPECT_EQ(Refusal("memory:\n  capacity: [1GiB, [1GiB]]\n"),
            "job.yaml:2:13: memory.capacity: item 2: is a list; write a size such as 512MiB");
}

TEST(LoadJobConfig, TakesBackThePlanFileOfAJob) {
  const std::string job = "memory: {plan: plan.txt}\n";
  const auto plan_with = [&](const std::vector<std::string>& overrides) {
    return ParseJobConfig(job, "job.yaml", overrides)->memory.plan;
  };
  EXPECT_EQ(plan_with({}), "plan.txt");
  EXPECT_EQ(plan_with({"memory.plan=none"}), "");
  EXPECT_EQ(plan_with({"memory.plan=none", "memory.plan=./none"}), "./none");
}

TEST(LoadJobConfig, KnowsWhatIsPublishedButNotBuilt) {
  EXPECT_EQ(
      Refusal("train:\n  precision: bf61\n"),
      "job.yaml:2:14: train.precision: 'bf61' is not known; did you mean 'bf16'? known: fp32, "
      "bf16, fp16");
  EXPECT_EQ(Refusal("pipeline:\n  replicas: 2\n"),
            "job.yaml:2:13: pipeline.replicas: '2' is known, but not built yet; today: 1");
  EXPECT_EQ(Refusal("memory:\n  strategy: harmony\n"),
            "job.yaml:2:13: memory.strategy: 'harmony' is known, but not built yet; today: keep, "
            "recompute, host_swap, d2d_swap, nvme_swap, auto");
  EXPECT_EQ(Refusal("model:\n  kind: vgg16\n"),
            "job.yaml:2:9: model.kind: 'vgg16' is known, but not built yet; today: gpt, bert, mlp, "
            "plugin");
  EXPECT_EQ(Refusal("memory:\n  strategy: auto\n"), "accepted");
  EXPECT_EQ(Refusal("memory:\n  strategy: d2d_swap\n"), "accepted");
  EXPECT_EQ(Refusal("memory:\n  strategy: nvme_swap\n  nvme_directory: /scratch\n"
                    "  nvme_capacity: 2GiB\n"),
            "accepted");
}

TEST(LoadJobConfig, WantsTheRateBetweenSeveralServers) {
  EXPECT_EQ(Refusal("topology:\n  servers: 2\n  network_rate: 12.5GB/s\n  network_latency: 5us\n"),
            "accepted");
  EXPECT_EQ(Refusal("topology:\n  servers: 2\n"),
            "default: topology.network_rate: is missing; 2 servers are planned for by the rate "
            "between them, such as 25GB/s");
  EXPECT_EQ(Refusal("topology:\n  servers: 0\n"),
            "job.yaml:2:12: topology.servers: is 0; must be at least 1 and at most 4096");
  EXPECT_EQ(Refusal("topology:\n  network_rate: fast\n"),
            "job.yaml:2:17: topology.network_rate: 'fast' is not a number with a unit, such as "
            "'25GB/s'");
  EXPECT_EQ(Refusal("topology:\n  network_rate: [1GB/s]\n"),
            "job.yaml:2:17: topology.network_rate: is a list; write a rate such as 25GB/s");
  EXPECT_EQ(Refusal("topology:\n  servers: 2\n  network_rate: 1GB/s\n  throttle: 0.5\n"),
            "job.yaml:4:13: topology.throttle: holds links of one server, and topology.servers is "
            "2; none works");
}

TEST(LoadJobConfig, ThrottlesByAScaleAboveNothing) {
  for (const char* scale : {"none", "1", "0.05", "2.5e-3", "20"}) {
    EXPECT_EQ(Refusal(std::string("topology:\n  throttle: ") + scale + "\n"), "accepted") << scale;
  }
  for (const char* scale : {"links", "0", "-1", "inf", "nan", "5%"}) {
    EXPECT_EQ(Refusal(std::string("topology:\n  throttle: ") + scale + "\n"),
              std::string("job.yaml:2:13: topology.throttle: '") + scale +
                  "' is not known; write none, or a scale above 0 (1: as fast as the topology "
                  "says, 0.05: a twentieth)");
  }
}

TEST(LoadJobConfig, AsksWhyNoJobRunsOnCudaWhereOneWantsTo) {
  ConfigLimits limits = SmallMachine();
  limits.known.why_no_cuda = [] { return std::string("no CUDA: the test has none"); };
  const auto problem = [&](const std::string& backend,
                           const std::vector<std::string>& overrides = {}) {
    return std::string(
        ParseJobConfig("pipeline:\n  backend: " + backend + "\n", "job.yaml", overrides, limits)
            .status()
            .message());
  };
  EXPECT_EQ(problem("cuda"), "job.yaml:2:12: pipeline.backend: no CUDA: the test has none");
  EXPECT_THAT(problem("gpu"),
              testing::HasSubstr("'gpu' is not known; did you mean 'cpu'? known: cpu, cuda"));
  EXPECT_EQ(problem("cpu"), "");
  EXPECT_EQ(problem("cuda", {"pipeline.backend=cpu"}), "");
  EXPECT_EQ(problem("cpu", {"pipeline.backend=cuda"}),
            "--set pipeline.backend: no CUDA: the test has none");
  limits.known.purpose = JobPurpose::kStudy;
  EXPECT_EQ(problem("cuda"), "");
  EXPECT_THAT(problem("gpu"), testing::EndsWith("known: cpu, cuda"));
}

// As `siphon generate` and a resume read what a checkpoint says of it.
TEST(LoadJobConfig, ReadsAJobThatRanOnDevicesWhereThereAreNone) {
  JobConfig job;
  job.pipeline.backend = "cuda";
  job.memory.strategy = "auto";
  const auto read = ParsePastJob(WriteJobConfig(job), "step-00000004 (its job)");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, job);
  EXPECT_THAT(std::string(ParsePastJob("pipelines: {}", "it").status().message()),
              testing::HasSubstr("it:1:1: "));
}

TEST(LoadJobConfig, ListsKnownNamesForUnknownOnes) {
  EXPECT_EQ(
      Refusal("pipeline:\n  schedule: 1b1f\n"),
      "job.yaml:2:13: pipeline.schedule: '1b1f' is not known; did you mean '1f1b'? known: gpipe, "
      "1f1b");
  EXPECT_EQ(Refusal("pipeline:\n  partition: evenly\n"),
            "job.yaml:2:14: pipeline.partition: 'evenly' is not known; known: balanced");
  EXPECT_EQ(Refusal("train:\n  optimizer: adamw2\n"),
            "job.yaml:2:14: train.optimizer: 'adamw2' is not known; did you mean 'adamw'? known: "
            "adamw, adam, sgd");
  EXPECT_EQ(Refusal("train:\n  schedule: 1f1b\n"),
            "job.yaml:2:13: train.schedule: '1f1b' is not known; known: cosine, linear, constant");
}

TEST(LoadJobConfig, OptionsOfSchedulesHaveTheirRanges) {
  EXPECT_EQ(Refusal("pipeline:\n  in_flight: -1\n"),
            "job.yaml:2:14: pipeline.in_flight: is -1; must be at least 0 and at most 1048576");
  EXPECT_EQ(Refusal("pipeline:\n  warm_up: c\n"),
            "job.yaml:2:12: pipeline.warm_up: 'c' is not known; known: a, b");
  EXPECT_EQ(Refusal("pipeline:\n  depth: [4, 0]\n"),
            "job.yaml:2:10: pipeline.depth: is 0; must be at least 1 and at most 1048576");
  EXPECT_EQ(Refusal("pipeline:\n  forward_pack: 0\n"),
            "job.yaml:2:17: pipeline.forward_pack: is 0; must be at least 1 and at most 4096");
  EXPECT_EQ(
      Refusal("pipeline:\n  backward_group: -1\n"),
      "job.yaml:2:19: pipeline.backward_group: is -1; must be at least 0 and at most 1048576");
  EXPECT_EQ(Refusal("pipeline:\n  backward_group: half\n"),
            "job.yaml:2:19: pipeline.backward_group: is 'half'; write a whole number");
  EXPECT_EQ(Refusal("pipeline: {in_flight: 3, warm_up: b, depth: [4, 3], forward_pack: 2, "
                    "backward_pack: 1, microbatch_group: 4, backward_group: 2, "
                    "schedule_file: a.csv}\n"),
            "accepted");
}

TEST(LoadJobConfig, ARegisteredNameIsBuiltWhateverTheTableSays) {
  ConfigLimits limits = SmallMachine();
  limits.known.schedules = {"zb_h1", "my_own"};
  for (const char* name : {"zb_h1", "my_own"}) {
    const auto job =
        ParseJobConfig(std::string("pipeline: {schedule: ") + name + "}\n", "job.yaml", {}, limits);
    EXPECT_TRUE(job.ok()) << job.status();
  }
}

TEST(LoadJobConfig, AnEmptyRegistryAcceptsEveryName) {
  const auto job = ParseJobConfig("pipeline: {schedule: whatever}\n", "job.yaml", {});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->pipeline.schedule, "whatever");
}

TEST(LoadJobConfig, ReadsFilesAndNamesMissingOnes) {
  const std::string path = testing::TempDir() + "/siphon_job_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << "train:\n  steps: 12\n  sede: 1\n";
  const auto wrong = LoadJobConfig(path, {}, SmallMachine());
  EXPECT_EQ(wrong.status(), absl::InvalidArgumentError(
                                path + ":3:3: train: unknown key 'sede'; did you mean 'seed'?"));
  std::ofstream(path) << "train:\n  steps: 12\n";
  const auto right = LoadJobConfig(path, {}, SmallMachine());
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(right->train.steps, 12);
  std::remove(path.c_str());
  EXPECT_EQ(LoadJobConfig(path, {}, SmallMachine()).status(),
            absl::NotFoundError(path + ": cannot be opened; write the path of a job file, such as "
                                       "configs/jobs/quickstart.yaml"));
  EXPECT_EQ(LoadJobConfig("/", {}, SmallMachine()).status(),
            absl::InvalidArgumentError("/: cannot be read; a job file is a regular file"));
}

}  // namespace
}  // namespace siphon
