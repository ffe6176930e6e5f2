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
#include "pipeline/torch/memory/tensor_bytes.h"
#include "pipeline/torch/parameters/optimizers.h"
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
  const absl::Status trained = TrainWithProgram(first, folder_, Arguments(first));
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
  const absl::Status trained = TrainWithProgram(job, folder_, Arguments(job));
  if (!OnGpu()) {
    EXPECT_TRUE(trained.ok()) << trained;
    return;
  }
  EXPECT_THAT(std::string(trained.message()),
              testing::AllOf(testing::HasSubstr("adaptive_avg_pool2d_backward"),
                             testing::HasSubstr("has no deterministic algorithm")));
  job.output.directory += "-allowed";
  job.train.deterministic = false;
  const absl::Status allowed = TrainWithProgram(job, folder_, Arguments(job));
  EXPECT_TRUE(allowed.ok()) << allowed;
}

// One parameter, as some steps of training may have left it.
ParameterUpdate UpdateOf(const OptimizerTraits& optimizer, const OptimizerOptions& options,
                         int64_t count, int update, double decay) {
  const auto values = [&] { return at::randn({count}, at::kFloat); };
  ParameterUpdate made = {.parameter = values(),
                          .gradient = values() * at::exp(4 * values() - 8),
                          .update_count = at::full({}, update, at::kFloat),
                          .learning_rate = 3e-4 * update / 3,
                          .weight_decay = decay};
  for (int moment = 0; moment < optimizer.moments(options); ++moment) {
    made.moments.push_back(moment == 0 ? values() : at::exp(6 * values() - 12));
  }
  return made;
}

ParameterUpdate CopyTo(at::Device device, const ParameterUpdate& update) {
  const auto copy = [&](const at::Tensor& tensor) {
    return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  };
  ParameterUpdate copied = update;
  copied.parameter = copy(update.parameter);
  copied.gradient = copy(update.gradient);
  copied.update_count = copy(update.update_count);
  for (at::Tensor& moment : copied.moments) moment = copy(moment);
  return copied;
}

// Steps that a plan has on the host leave the bits of those on the device: for each optimizer, as
// many values as take either way through its kernel, and many numbers of updates.
TEST_F(DevicePromises, UpdatesOnTheHostHaveTheBitsOfThoseOnTheDevice) {
  if (!OnGpu()) GTEST_SKIP() << "skipped, because the CPU's kernels round otherwise";
  const auto open = OpenGpu();
  const at::Device device = ToDevice(open->device());
  PowersOnDevice powers(device);
  at::manual_seed(7);
  for (const std::string& name : KnownOptimizers()) {
    const auto optimizer = FindOptimizer(name);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    for (const int64_t count : {1, 1003, 4096, 70'000, 1'000'000}) {
      for (const int update : {1, 2, 3, 10, 255, 256, 1000, 54'321}) {
        for (const double decay : {0.0, 0.1}) {
          OptimizerOptions options;
          options.name = name;
          options.momentum = update % 2 == 0 ? 0.9 : 0;
          const ParameterUpdate host = UpdateOf(**optimizer, options, count, update, decay);
          const ParameterUpdate there = CopyTo(device, host);
          (*optimizer)->update(options, there);
          (*optimizer)->update_as_on_cuda(options, host, powers);
          const auto different = [](const at::Tensor& one, const at::Tensor& other) {
            return one.view(at::kInt).ne(other.cpu().view(at::kInt)).sum().item<int64_t>();
          };
          SCOPED_TRACE(
              absl::StrCat(name, ", ", count, " values, update ", update, ", decay ", decay));
          EXPECT_EQ(different(host.parameter, there.parameter), 0);
          for (size_t moment = 0; moment < host.moments.size(); ++moment) {
            EXPECT_EQ(different(host.moments[moment], there.moments[moment]), 0) << moment;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace siphon
