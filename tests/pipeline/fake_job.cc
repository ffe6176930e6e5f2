#include "tests/pipeline/fake_job.h"

#include <gtest/gtest.h>
#include <atomic>

#include <map>
#include <utility>

namespace siphon {
namespace {

constexpr Bytes kRingBytes(192);  // smaller than the messages of all stages but the first

RingLayout LayOutJobRings(const WorkerLayout& layout) {
  std::vector<RingSpec> rings;
  for (const Channel& channel : ChannelsOf(layout)) rings.push_back({channel, kRingBytes});
  return LayOutRings(std::move(rings));
}

// Activations of each of a stage's two layers, and the parameters of both.
StagePlan GroupsOf(const StageRange& layers) {
  const int second = layers.begin + 1;
  const Bytes saved(8 * sizeof(float));
  return {.groups = {{.group = {.layers = {layers.begin, second}, .bytes = saved},
                      .choice = {.placement = Placement::kHostSwap}},
                     {.group = {.layers = {second, layers.end}, .bytes = saved},
                      .choice = {.placement = Placement::kPeerSwap,
                                 .stripes = {{DeviceId(5), Bytes(18)}, {DeviceId(6), Bytes(14)}}}},
                     {.group = {.kind = GroupKind::kParameters, .layers = layers}}}};
}

}  // namespace

struct FakeJob::Shared {
  std::atomic<bool> failed{false};
  WorkerId failing{-1};
  int fail_at = -1;
  std::vector<int> actions;  // done by each worker in this run; each is touched by its thread only
};

FakeJob::FakeJob(const Schedule& schedule, std::vector<SharedParameter> shared,
                 JobTransport transport, const Schedule* lowered)
    : shared_(std::make_unique<Shared>()) {
  const int stages = StageCount(schedule);
  const int workers = WorkerCount(schedule);
  layout_.worker_of_stage = schedule.worker_of_stage;
  layout_.owned_parameters.assign(static_cast<size_t>(stages), 1);
  layout_.shared_parameters = shared;
  shared_->actions.assign(static_cast<size_t>(workers), 0);
  for (int stage = 0; stage < stages; ++stage) {
    layout_.memory.stages.push_back(GroupsOf({2 * stage, 2 * stage + 2}));
    stages_.push_back(std::make_unique<FakeStage>(StageId(stage), stages, shared));
  }
  const LivenessCheck check = [state = shared_.get()] {
    return state->failed ? absl::UnavailableError("another worker failed") : absl::OkStatus();
  };
  job_ = transport == JobTransport::kInProcess
             ? MakeInProcessJob(workers, check)
             : MakeRingJob(workers, LayOutJobRings(layout_), check);
  if (lowered != nullptr) {
    const auto laid_out = LayOutParking(layout_.memory, *lowered);
    EXPECT_TRUE(laid_out.ok()) << laid_out.status();
    for (const WorkerParking& parking : *laid_out) parkings_.emplace_back(parking);
  }
  for (int worker = 0; worker < workers; ++worker) {
    std::map<StageId, StageCompute*> held;
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) {
      held[stage] = stages_[static_cast<size_t>(stage.value)].get();
    }
    const auto observer = [this, worker](const Action& action) {
      const bool now = shared_->actions[static_cast<size_t>(worker)]++ == shared_->fail_at;
      if (now && shared_->failing == WorkerId(worker)) {
        stages_[static_cast<size_t>(action.stage.value)]->FailNext();
      }
      return absl::OkStatus();
    };
    workers_.push_back(std::make_unique<StageWorker>(
        WorkerId(worker), layout_, std::move(held),
        job_.transports[static_cast<size_t>(worker)].get(),
        parkings_.empty() ? nullptr : parkings_[static_cast<size_t>(worker)].engine(), observer));
  }
}

FakeJob::~FakeJob() = default;

void FakeJob::FailAt(WorkerId worker, int action) {
  shared_->failing = worker;
  shared_->fail_at = action;
}

std::vector<absl::StatusOr<StepReport>> FakeJob::Run(const Schedule& lowered, StepMode mode,
                                                     const StepEnd& end) {
  std::vector<absl::StatusOr<StepReport>> results(workers_.size());
  shared_->actions.assign(workers_.size(), 0);
  const StepInputs inputs{.mode = mode};
  RunInThreads(job_, [&](WorkerId me, Transport&) {
    const size_t worker = static_cast<size_t>(me.value);
    results[worker] = workers_[worker]->RunStep(lowered.programs[worker], inputs, end);
    if (!results[worker].ok()) shared_->failed = true;
  });
  return results;
}

}  // namespace siphon
