#include "tests/launch/program/tiny_job.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/config/load_job_config.h"
#include "launch/run/trainer.h"
#include "tests/launch/run/checkpoint_bits.h"

namespace siphon {

TinyJobTest::TinyJobTest() : job_(WriteFile("job.yaml", TinyJobText())) {}

std::string TinyJobTest::TinyJobText() const {
  return absl::StrCat(R"(model:
  kind: gpt
  layers: 4
  hidden: 16
  heads: 2
  dropout: 0.1
data:
  kind: synthetic
  sequence_length: 8
  samples: 64
  validation_fraction: 0.25
train:
  steps: 12
  global_batch: 8
  microbatch: 2
  learning_rate: 0.01
  clip_norm: 0.5
pipeline:
  stages: 4
launch:
  heartbeat_timeout: 2s
checkpoint:
  every_steps: 2
  keep: 0
output:
  directory: )",
                      PathOf("run"), "\n");
}

std::string TinyJobTest::CheckpointPath(const std::string& run, int step) const {
  const std::string begin = PathOf(run) + "/checkpoints/step-";
  return step == 0 ? begin + "0000000" : absl::StrFormat("%s%08d", begin, step);
}

std::map<std::string, std::string> TinyJobTest::RunCheckpoint(const std::string& run,
                                                              int step) const {
  return CheckpointBits(CheckpointPath(run, step));
}

const std::map<std::string, std::string>& TinyJobTest::ExpectedCheckpoint(int step) {
  if (expected_.empty()) {
    ConfigLimits limits;
    limits.known.why_no_cuda = [] { return std::string(); };
    const auto job = LoadJobConfig(
        job_,
        {"pipeline.stages=1", "pipeline.backend=cpu", "output.directory=" + PathOf("expected")},
        limits);
    EXPECT_TRUE(job.ok()) << job.status();
    const auto outcome = Trainer(*job).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    for (int saved = 2; saved <= 12; saved += 2) {
      expected_[saved] = RunCheckpoint("expected", saved);
    }
  }
  return expected_[step];
}

}  // namespace siphon
