// What determinism and loss scales promise of a device, by whole jobs: SIPHON_GPU=1 asks one, else
// it is the CPU that keeps it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/gpu/worker_jobs.h"

namespace siphon {
namespace {

using DevicePromises = WorkerJobs;

struct Attention {
  std::string precision;
  int width;  // of a head

  friend void PrintTo(const Attention& attention, std::ostream* out) {
    *out << attention.precision << ", heads of " << attention.width;
  }
};

class FusedAttention : public WorkerJobs, public testing::WithParamInterface<Attention> {};

// Heads of these widths go to fused kernels on a device.
TEST_P(FusedAttention, HasTheSameBitsTwice) {
  const auto job = [&] {
    JobConfig made = JobOf("gpt", 1);
    made.model.layers = 2;
    made.model.hidden = 256;
    made.model.heads = 256 / GetParam().width;
    made.model.dropout = 0;
    made.data.sequence_length = OnGpu() ? 256 : 24;
    made.train.precision = GetParam().precision;
    return made;
  };
  const JobConfig first = job();
  const absl::Status trained = TrainWithProgram(first, folder_, Arguments());
  ASSERT_TRUE(trained.ok()) << trained;
  const auto once = ReadResult(first);
  ASSERT_TRUE(once.ok()) << once.status();
  Trains(job(), *once);
}

INSTANTIATE_TEST_SUITE_P(
    DevicePromises, FusedAttention,
    testing::ValuesIn(AllOrFew(
        std::vector<Attention>{{"bf16", 64}, {"fp16", 128}, {"bf16", 128}, {"fp16", 64}}, 1)),
    [](const auto& info) { return absl::StrCat(info.param.precision, "_", info.param.width); });

// One target a microbatch: the first scale is too large for the gradient of the output layer.
TEST_F(DevicePromises, AnOverflowIsSkippedByAllWorkersAlike) {
  const auto job_of = [&](int workers) {
    JobConfig job = JobOf("gpt", workers);
    job.model.hidden = 96;
    job.data.sequence_length = 1;
    job.train.global_batch = 2;
    job.train.microbatch = 1;
    job.train.precision = "fp16";
    return job;
  };
  const JobResult expected = Expected(job_of(1));
  ASSERT_FALSE(std::isfinite(expected.gradient_norms.front())) << "no overflow to skip";
  EXPECT_TRUE(std::isfinite(expected.gradient_norms.back())) << "nothing but overflows";
  for (const int workers : {1, 2, 4}) {
    if (!AllCases() && workers == 2) continue;
    SCOPED_TRACE(workers);
    Trains(job_of(workers), expected);
  }
}

// Its backward has no deterministic algorithm on CUDA, and one on the CPU.
TEST_F(DevicePromises, AdaptivePoolingIsRefusedByNameWhereItsBitsMayDiffer) {
  JobConfig job = JobOf("plugin", 1);
  job.data = {.kind = "synthetic", .validation_fraction = 0, .samples = 64};
  const char* const elsewhere = std::getenv("SIPHON_POOLING_PLUGIN");
  job.model = {.kind = "plugin", .library = elsewhere == nullptr ? SIPHON_POOLING : elsewhere};
  const absl::Status trained = TrainWithProgram(job, folder_, Arguments());
  if (!OnGpu()) {
    EXPECT_TRUE(trained.ok()) << trained;
    return;
  }
  EXPECT_THAT(std::string(trained.message()),
              testing::AllOf(testing::HasSubstr("adaptive_avg_pool2d_backward"),
                             testing::HasSubstr("has no deterministic algorithm")));
  job.output.directory += "-allowed";
  job.train.deterministic = false;
  const absl::Status allowed = TrainWithProgram(job, folder_, Arguments());
  EXPECT_TRUE(allowed.ok()) << allowed;
}

}  // namespace
}  // namespace siphon
