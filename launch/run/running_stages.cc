#include "launch/run/running_stages.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "launch/process/core_count.h"
#include "launch/run/job/optimizer_of.h"
#include "pipeline/carried_state.h"
#include "pipeline/host_steps.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/status.h"

namespace siphon {

namespace {

// That draw initial values: cores that the workers of this machine leave each other, as nothing
// else is computed then. Taken to be all on one.
int DrawingThreads(const PreparedJob& prepared) {
  const int each = CoreCount() / WorkerCount(prepared.plan.training);
  return std::max(each, static_cast<int>(prepared.job.pipeline.threads_per_worker));
}

}  // namespace

absl::Status RunningStages::Make(PlanFollower& follower) {
  const TrainingPlan& plan = prepared_.plan;
  const HomeGroups home = HomeGroupsOf(plan.training, plan.memory);
  const ComputeDevice device =
      seat_.device == nullptr ? ComputeDevice() : seat_.device->torch->device();
  for (const StageId stage : StagesOf(plan.training, seat_.me)) {
    SIPHON_ASSIGN_OR_RETURN(
        stages_[stage],
        MakeTorchStage(prepared_.model, plan.partition, stage,
                       static_cast<uint64_t>(prepared_.job.train.seed),
                       OptimizerOf(prepared_.job.train), StateGroupsAway(plan.memory, home, stage),
                       device, DrawingThreads(prepared_)));
  }
  MakeWorker(follower);
  return worker_->state().SendAway();
}

void RunningStages::MakeWorker(PlanFollower& follower) {
  worker_ = std::make_unique<StageWorker>(seat_.me, LayoutOf(follower.plan()), Computes(),
                                          seat_.transport, follower.engine(), seat_.at_action);
  const ProfilerRanges* const ranges =
      seat_.device == nullptr ? nullptr : seat_.device->cuda->Ranges();
  if (ranges == nullptr) return;
  ranges->NameThread(absl::StrCat("worker ", seat_.me.value));
  worker_->Mark(
      {[ranges](const std::string& name) { ranges->Push(name); }, [ranges] { ranges->Pop(); }});
}

WorkerLayout RunningStages::LayoutOf(const FollowedPlan& followed) const {
  const TrainingPlan& plan = prepared_.plan;
  WorkerLayout layout{.worker_of_stage = plan.training.worker_of_stage,
                      .shared_parameters = plan.shared_parameters,
                      .memory = followed.memory,
                      .home = HomeGroupsOf(followed.schedule, followed.memory)};
  layout.owned_parameters.resize(plan.partition.stages.size());
  for (const Parameter& parameter : CanonicalParameters(prepared_.model.spec)) {
    const StageId owner = StageOfLayer(plan.partition, parameter.uses[0].layer);
    ++layout.owned_parameters[owner.value];
  }
  return layout;
}

std::map<StageId, StageCompute*> RunningStages::Computes() const {
  std::map<StageId, StageCompute*> computes;
  for (const auto& [stage, compute] : stages_) computes[stage] = compute.get();
  return computes;
}

bool RunningStages::NeedsData() const {
  const int last = static_cast<int>(prepared_.plan.partition.stages.size()) - 1;
  return Has(StageId(0)) || Has(StageId(last));
}

absl::StatusOr<StepReport> RunningStages::RunBatch(const Schedule& schedule, const Batch& batch,
                                                   int64_t step, StepMode mode,
                                                   const StepEnd& end) {
  StepInputs inputs{.step = step,
                    .mode = mode,
                    .target_count = std::max<int64_t>(1, batch.target_count),
                    .loss_scale = end.loss_scale};
  // Stages between the ends read no data, but every stage is told the shapes.
  inputs.microbatches.resize(
      schedule.microbatches,
      {.input_spec = Batched(prepared_.data.input, prepared_.job.train.microbatch),
       .target_spec = Batched(prepared_.data.target, prepared_.job.train.microbatch)});
  for (size_t i = 0; i < batch.microbatches.size(); ++i) {
    inputs.microbatches[i].input = batch.microbatches[i].input;
    inputs.microbatches[i].target = batch.microbatches[i].target;
  }
  return worker_->RunStep(schedule.programs[seat_.me.value], inputs, end);
}

}  // namespace siphon
