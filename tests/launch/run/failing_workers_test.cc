// What is left behind by a worker that fails, and by one that finds damaged memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "launch/checkpoint/checkpoint_directory.h"
#include "launch/run/seat/training_state.h"
#include "launch/run/trainer.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/layers.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"
#include "tests/launch/run/small_job.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Saved by the backward of what it is multiplied with.
at::Tensor SaysWhenItIsFreed(std::promise<void>* said) {
  static float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  return at::from_blob(ones, {8}, [said](void*) { said->set_value(); });
}

// Three layers, a stage each. The middle one fails in its first backward, when the receive of the
// third microbatch is posted; that is sent when what the middle one holds is freed.
Model FailingModel(std::promise<void>* said, const std::shared_future<void>& gone) {
  constexpr int64_t kWide = 9'000'000;  // so that the system takes back at once what is freed
  Model model;
  model.spec = ClassifierOf(
      {{.name = "in",
        .parameters = {{"in.weight", {1, 6}}},
        .outputs = {{DType::kFloat32, {kWide}}}},
       {.name = "mid", .parameters = {{"mid.weight", {8, 8}}}, .outputs = {{DType::kFloat32, {8}}}},
       {.name = "out", .parameters = {{"out.weight", {3, 8}}}}});
  const LayerForward in = [gone, forwards = 0](LayerContext& context,
                                               const std::vector<at::Tensor>& inputs) mutable {
    if (++forwards == 3) gone.wait_for(std::chrono::seconds(60));
    const at::Tensor narrow = at::linear(inputs[0], context.Parameter(0));
    return std::vector<at::Tensor>{narrow.repeat({1, kWide})};
  };
  const LayerForward mid = [said, forwards = 0](LayerContext& context,
                                                const std::vector<at::Tensor>& inputs) mutable {
    at::Tensor output = at::linear(inputs[0].narrow(1, 0, 8), context.Parameter(0));
    if (++forwards == 2) output = output * SaysWhenItIsFreed(said);
    if (output.requires_grad()) {
      output.register_hook([](const at::Tensor& gradient) -> at::Tensor {
        TORCH_CHECK(false, "this layer has no backward");
        return gradient;
      });
    }
    return std::vector<at::Tensor>{output};
  };
  const LayerForward out = [](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{at::linear(inputs[0], context.Parameter(0))};
  };
  model.forward = {in, mid, out};
  return model;
}

class FailingWorkers : public ParkingJob {};

// Nobody sends to, or receives from, tensors of a worker that has gone.
TEST_F(FailingWorkers, LeaveNothingToOthersThatIsFreed) {
  std::promise<void> said;
  const std::shared_future<void> gone = said.get_future().share();
  JobConfig job = Job(3);
  job.model.kind = "mine";
  job.data.kind = "synthetic";
  job.train.steps = 1;
  job.train.global_batch = 6;
  job.train.microbatch = 1;
  job.pipeline.schedule = "1f1b";
  const absl::Status failed = Trainer(job,
                                      [&](const ModelOptions&) -> absl::StatusOr<Model> {
                                        return FailingModel(&said, gone);
                                      })
                                  .Train()
                                  .status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("this layer has no backward"));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("worker 1"));
}

// What is parked between steps comes back for a checkpoint, and is not what left: whoever went on
// would train with it, or without knowing.
TEST_F(FailingWorkers, EndTheRunWhereACheckpointFindsParkedStateDamaged) {
  JobConfig job = TightJob("d2d_swap", 90);
  job.memory.check = "full";
  job.checkpoint.every_steps = 1;
  const auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const SeatedRun run = RunSeats(*prepared, [](WorkerSeat& seat) {
    seat.at_phase = [lent = seat.lent, me = seat.me,
                     done = false](const std::string& phase) mutable {
      if (me == WorkerId(0) && phase == "writing a checkpoint" && !std::exchange(done, true)) {
        std::for_each(lent.begin(), lent.end(), [](std::byte& byte) { byte = ~byte; });
      }
      return absl::OkStatus();
    };
  });
  EXPECT_EQ(run.ends[0].status().code(), absl::StatusCode::kDataLoss) << run.ends[0].status();
  EXPECT_THAT(std::string(run.ends[0].status().message()), HasSubstr("came back changed"));
}

// Hundreds of gigabytes take longer than launch.stall_timeout.
TEST_F(FailingWorkers, AreNotThoseThatWriteOrReadALongCheckpoint) {
  JobConfig job = TightJob("d2d_swap", 90);
  job.checkpoint.every_steps = job.train.steps;
  std::mutex mutex;
  std::map<std::string, int> signs;  // by phase
  const auto run = [&](const JobConfig& of) {
    const auto prepared = PrepareJob(of, {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    const SeatedRun seated = RunSeats(*prepared, [&](WorkerSeat& seat) {
      seat.at_phase = [&](const std::string& phase) {
        const std::lock_guard lock(mutex);
        ++signs[phase];
        return absl::OkStatus();
      };
    });
    for (const auto& end : seated.ends) EXPECT_TRUE(end.ok()) << end.status();
  };
  run(job);
  const auto tensors =
      static_cast<int>(CheckpointBits(NewestCheckpoint(CheckpointDirectory(job)).value()).size());
  EXPECT_GT(tensors, 30);
  EXPECT_GE(signs["writing a checkpoint"], tensors);
  signs.clear();
  job.checkpoint.resume = "auto";
  job.train.steps += 1;
  run(job);
  EXPECT_GE(signs["reading the checkpoint"], tensors);
}

}  // namespace
}  // namespace siphon
