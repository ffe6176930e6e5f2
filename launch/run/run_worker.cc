#include "launch/run/run_worker.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/data/batches.h"
#include "launch/plan_job/learning_rate.h"
#include "launch/run/device_failure.h"
#include "launch/run/follow/plan_follower.h"
#include "launch/run/follow/replanner.h"
#include "launch/run/job/optimizer_of.h"
#include "launch/run/parking/host_memory.h"
#include "launch/run/record/run_recorder.h"
#include "launch/run/record/run_warnings.h"
#include "launch/run/running_stages.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/phases.h"
#include "launch/run/seat/seat_memory.h"
#include "launch/run/seat/step_record.h"
#include "launch/run/seat/training_state.h"
#include "launch/run/validation_loss.h"
#include "pipeline/carried_state.h"
#include "pipeline/host_steps.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Clock = std::chrono::steady_clock;

Nanos Since(Clock::time_point begin) {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

std::vector<ParkedState> StateOf(const FollowedPlan& plan) {
  return StateAway(plan.memory, plan.schedule);
}

// One worker's run. Members are in the order in which they are made.
class WorkerRun {
 public:
  WorkerRun(const PreparedJob& prepared, const WorkerSeat& seat)
      : prepared_(prepared),
        seat_(seat),
        memory_(prepared.job, seat),
        coordinator_(seat.transport, seat.me, WorkerCount(prepared.plan.training)),
        follower_(prepared, seat, memory_, coordinator_),
        replanner_(prepared, coordinator_),
        stages_(prepared, seat) {}

  absl::StatusOr<RunOutcome> Run() {
    absl::StatusOr<RunOutcome> outcome = Train();
    if (outcome.ok()) return outcome;
    const absl::Status failure =
        WithDeviceFailure(outcome.status(), seat_.device, memory_, follower_.lent());
    if (seat_.at_failure) seat_.at_failure(failure);
    return failure;
  }

 private:
  absl::StatusOr<RunOutcome> Train();
  absl::Status TrainOneStep();
  // Collective: asks all once more whether to stop.
  absl::Status AgreeToStop();
  // The scale of the next step, after one that was skipped or not.
  absl::Status FollowLossScale(bool skipped);
  absl::Status FollowPlan(const std::vector<StepRecord>& records);
  absl::Status PlanAgain();
  absl::Status MoveTo(const PlanText& plan);
  absl::StatusOr<HostClaim> ClaimCarried(const FollowedPlan& next,
                                         const std::set<StageId>& on_host);
  absl::Status StayWithPlan(const absl::Status& refused);
  bool ValidationIsDue() const;
  absl::Status SaveCheckpoint();
  absl::Status StoppedWithout(const absl::Status& save) const;
  absl::Status Phase(const std::string& name) const {
    return seat_.at_phase ? seat_.at_phase(name) : absl::OkStatus();
  }
  PhaseObserver PhaseHook() const {
    return [this](const std::string& phase) { return Phase(phase); };
  }

  const PreparedJob& prepared_;
  const WorkerSeat& seat_;
  SeatMemory memory_;
  Coordinator coordinator_;
  PlanFollower follower_;
  Replanner replanner_;
  RunningStages stages_;
  std::unique_ptr<RunRecorder> recorder_;  // on worker 0
  Progress progress_;
  RunOutcome outcome_;
  RunWarnings warnings_{&outcome_.warnings};
  int64_t traced_step_ = 0;   // the second of this run: the first has warm-up effects
  absl::Status failed_save_;  // the last one; says who met it
  bool stop_agreed_ = false;
};

absl::Status WorkerRun::TrainOneStep() {
  const JobConfig& job = prepared_.job;
  const Clock::time_point begin = Clock::now();
  memory_.ResetPeak();
  follower_.BeforeStep();
  Batch batch;
  if (stages_.NeedsData()) {
    SIPHON_ASSIGN_OR_RETURN(
        batch,
        TrainingBatch(prepared_.data,
                      {.global_batch = job.train.global_batch, .microbatch = job.train.microbatch},
                      static_cast<uint64_t>(job.train.seed), progress_.samples_consumed));
  }
  const LossScale& scale = progress_.loss_scale;
  const bool scales = ScalesLoss(job.train);
  const StepEnd end{.update = progress_.step + 1 - scale.skipped_steps,
                    .learning_rate = LearningRateAt(job.train, progress_.step),
                    .clip_norm = job.train.clip_norm,
                    .loss_scale = scale.scale,
                    .overflow = scales ? OverflowRule::kSkip : OverflowRule::kUpdate};
  SIPHON_ASSIGN_OR_RETURN(
      const StepReport report,
      stages_.RunBatch(follower_.plan().schedule, batch, progress_.step, StepMode::kTrain, end));

  StepRecord mine = SummariseTimeline(report.timeline);
  mine.peak_bytes = memory_.Peak().value;
  SetBytesOut(report.swapped_out, mine);
  SIPHON_RETURN_IF_ERROR(follower_.Report(Since(begin), mine));
  replanner_.Note(report.timeline, Since(begin), follower_.link_use());
  mine.stop_requested = seat_.stop_requested && seat_.stop_requested();
  SIPHON_ASSIGN_OR_RETURN(const std::vector<StepRecord> records, coordinator_.Gather(mine));
  for (const StepRecord& record : records) stop_agreed_ = stop_agreed_ || record.stop_requested;
  outcome_.last_loss = std::accumulate(report.losses.begin(), report.losses.end(), 0.0);
  const Nanos duration = Since(begin);

  if (scales) SIPHON_RETURN_IF_ERROR(FollowLossScale(report.skipped));
  progress_.step += 1;
  progress_.samples_consumed += job.train.global_batch;
  outcome_.steps_done = progress_.step;
  if (seat_.at_progress) seat_.at_progress(progress_.step, outcome_.last_checkpoint);
  std::optional<double> validation;
  if (ValidationIsDue()) {
    SIPHON_RETURN_IF_ERROR(Phase(kValidationPhase));
    SIPHON_ASSIGN_OR_RETURN(validation, ValidationLoss(prepared_, follower_.evaluation(),
                                                       progress_.step, stages_, coordinator_));
    outcome_.last_validation_loss = validation;
    // That may have taken longer than the step.
    SIPHON_RETURN_IF_ERROR(AgreeToStop());
  }
  std::vector<WorkerTimeline> timelines;
  if (job.output.trace && progress_.step == traced_step_) {
    SIPHON_ASSIGN_OR_RETURN(timelines, GatherTimelines(coordinator_, report.timeline));
  }
  if (recorder_ != nullptr) {
    if (!timelines.empty()) recorder_->RecordTrace(timelines, progress_.step);
    recorder_->Record({.step = progress_.step,
                       .loss = outcome_.last_loss,
                       .learning_rate = end.learning_rate,
                       .gradient_norm = report.gradient_norm,
                       .duration = duration,
                       .validation_loss = validation,
                       .replans = replanner_.replans(),
                       .loss_scale = scales ? std::optional<float>(end.loss_scale) : std::nullopt,
                       .skipped_steps = progress_.loss_scale.skipped_steps},
                      records);
  }
  if (!report.skipped) warnings_.NoteLoss(progress_.step, outcome_.last_loss);
  return FollowPlan(records);
}

absl::Status WorkerRun::AgreeToStop() {
  const int32_t mine = seat_.stop_requested && seat_.stop_requested() ? 1 : 0;
  SIPHON_ASSIGN_OR_RETURN(const std::vector<int32_t> all, coordinator_.Gather(mine));
  stop_agreed_ = stop_agreed_ || absl::c_linear_search(all, 1);
  return absl::OkStatus();
}

absl::Status WorkerRun::FollowLossScale(bool skipped) {
  LossScale& scale = progress_.loss_scale;
  scale = AfterStep(scale, skipped ? StepTaken::kSkipped : StepTaken::kUpdated);
  if (scale.scale >= kLeastLossScale) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the gradients of step ", progress_.step + 1,
                   " are no numbers, with a loss scale of ", scale.scale * 2,
                   " still: training has diverged; a lower train.learning_rate, a longer "
                   "train.warmup_steps or train.precision bf16 may help"));
}

absl::Status WorkerRun::FollowPlan(const std::vector<StepRecord>& records) {
  if (progress_.step == prepared_.job.train.steps) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(follower_.Follow(records, progress_.step + 1));
  for (const std::string& note : follower_.TakeNotes()) {
    if (recorder_ != nullptr) recorder_->RecordFallBack(note, follower_.plan());
  }
  return PlanAgain();
}

absl::Status WorkerRun::PlanAgain() {
  std::optional<PlanText> plan;
  if (seat_.next_plan) {
    plan = seat_.next_plan(progress_.step);
  } else {
    SIPHON_ASSIGN_OR_RETURN(plan, replanner_.Decide(follower_, progress_.step));
  }
  if (plan.has_value()) SIPHON_RETURN_IF_ERROR(MoveTo(*plan));
  for (const std::string& note : replanner_.TakeNotes()) {
    if (recorder_ != nullptr) recorder_->Say(note);
  }
  return absl::OkStatus();
}

// What it takes of the host while its state is on its way.
absl::StatusOr<HostClaim> WorkerRun::ClaimCarried(const FollowedPlan& next,
                                                  const std::set<StageId>& on_host) {
  const auto mine = [&](const FollowedPlan& plan) {
    std::vector<ParkedState> away = StateOf(plan);
    std::erase_if(away, [&](const ParkedState& state) { return !stages_.Has(state.parked.stage); });
    return away;
  };
  Bytes bytes = CarriedAtMost(mine(follower_.plan()), mine(next));
  for (const auto& [stage, compute] : stages_.stages()) {
    if (!on_host.contains(stage)) continue;
    for (const StepTensor& tensor : compute->StepTensors()) bytes += tensor.state_bytes;
  }
  return HostClaim::Take(bytes, &follower_.host(), kCarried);
}

// Where anything is refused, all workers stay with the plan that they have.
absl::Status WorkerRun::StayWithPlan(const absl::Status& refused) {
  if (recorder_ != nullptr) {
    recorder_->ShowWarning(absl::StrCat("the plan stays: ", refused.message()));
  }
  return absl::IsUnavailable(refused) ? refused : absl::OkStatus();
}

absl::Status WorkerRun::MoveTo(const PlanText& plan) {
  SIPHON_RETURN_IF_ERROR(Phase(kMovingPhase));
  const Clock::time_point begin = Clock::now();
  absl::StatusOr<PlanFollower::NextPlan> next = follower_.Prepare(plan);
  if (!next.ok()) return StayWithPlan(next.status());  // on all workers
  const std::map<StageId, StageCompute*> computes = stages_.Computes();
  const FollowedPlan& next_plan = next->plan.plan;
  std::set<StageId> on_host = StagesSteppedOnHost(follower_.plan().memory);
  on_host.merge(StagesSteppedOnHost(next_plan.memory));
  const absl::StatusOr<HostClaim> claim = ClaimCarried(next_plan, on_host);
  const absl::Status claimed = coordinator_.Agree(claim.status());
  if (!claimed.ok()) return StayWithPlan(claimed);
  const WorkerLayout layout = stages_.LayoutOf(next_plan);
  next->host_steps = HostSteps(layout, computes, /*engine=*/nullptr).MemoryNeeded();
  CarriedState carried;
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(carried.TakeOut(
      computes, StateOf(follower_.plan()), follower_.engine(), StateOf(next_plan), on_host)));
  stages_.DropWorker();
  SIPHON_ASSIGN_OR_RETURN(const PlanInForceIs in_force,
                          follower_.MoveTo(*std::move(next), progress_.step + 1));
  stages_.MakeWorker(follower_);
  absl::Status back = stages_.worker().host_steps().Begin(follower_.host_memory());
  if (back.ok()) back = carried.PutBack(computes, StateOf(follower_.plan()), follower_.engine());
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(back));
  if (in_force == PlanInForceIs::kBefore) return absl::OkStatus();
  replanner_.Moved(Since(begin));
  traced_step_ = std::min(progress_.step + 2, prepared_.job.train.steps);
  PlanText followed = plan;
  followed.memory = follower_.plan().memory;
  followed.training = follower_.plan().schedule;
  for (const std::string& note : replanner_.TakeNotes()) recorder_->RecordReplan(note, followed);
  return absl::OkStatus();
}

bool WorkerRun::ValidationIsDue() const {
  if (prepared_.plan.evaluation.programs.empty()) return false;
  const TrainConfig& train = prepared_.job.train;
  if (progress_.step == train.steps) return true;
  return train.validate_every > 0 && progress_.step % train.validate_every == 0;
}

// A checkpoint that cannot be written is no reason to lose the run: it goes on, and says so now and
// at the end.
absl::Status WorkerRun::SaveCheckpoint() {
  SIPHON_RETURN_IF_ERROR(Phase(kWritingPhase));
  auto saved = SaveState(prepared_, stages_.ForCheckpoint(), coordinator_, progress_, PhaseHook());
  if (saved.ok()) {
    outcome_.last_checkpoint = *saved;
    outcome_.checkpoint_step = progress_.step;
    if (seat_.at_progress) seat_.at_progress(progress_.step, outcome_.last_checkpoint);
    return absl::OkStatus();
  }
  // A worker is gone, or what was parked is not what left: that is not for want of a checkpoint.
  if (absl::IsUnavailable(saved.status()) || absl::IsDataLoss(saved.status())) {
    return saved.status();
  }
  warnings_.NoteFailedSave(progress_.step, saved.status());
  failed_save_ = saved.status();
  return absl::OkStatus();
}

// The last save of a run that is to stop has failed: of whoever met that, as that save's status
// says.
absl::Status WorkerRun::StoppedWithout(const absl::Status& save) const {
  absl::Status stopped =
      absl::InternalError(absl::StrCat("stopped on request after step ", progress_.step,
                                       ", and no checkpoint could be written: ", save.message()));
  save.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    stopped.SetPayload(type, payload);
  });
  return stopped;
}

absl::StatusOr<RunOutcome> WorkerRun::Train() {
  const JobConfig& job = prepared_.job;
  const std::unique_ptr<LedgerScope> counted = memory_.CountThread();
  SIPHON_RETURN_IF_ERROR(Phase(kMakingPhase));
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(memory_.TakeCommunication()));
  SIPHON_RETURN_IF_ERROR(follower_.TakeRoom());
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(stages_.Make(follower_)));
  HostSteps& host_steps = stages_.worker().host_steps();
  SIPHON_RETURN_IF_ERROR(follower_.TakeHostMemory(host_steps.MemoryNeeded()));
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(host_steps.Begin(follower_.host_memory())));
  SIPHON_RETURN_IF_ERROR(Phase(kReadingPhase));
  SIPHON_ASSIGN_OR_RETURN(progress_, RestoreState(prepared_, stages_.ForCheckpoint(), coordinator_,
                                                  PhaseHook(), outcome_.warnings));
  outcome_.steps_done = outcome_.first_step = progress_.step;
  outcome_.last_checkpoint = progress_.checkpoint;
  outcome_.checkpoint_step = progress_.step;
  if (progress_.step > 0 && seat_.at_progress) {
    seat_.at_progress(progress_.step, outcome_.last_checkpoint);
  }
  traced_step_ = std::min(progress_.step + 2, job.train.steps);
  SIPHON_RETURN_IF_ERROR(Phase(kOpeningPhase));
  absl::Status opened;
  if (seat_.me.value == 0) {
    auto recorder = RunRecorder::Open(prepared_, progress_.step);
    opened = recorder.status();
    if (recorder.ok()) recorder_ = *std::move(recorder);
  }
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(opened));
  warnings_.NoteValidation(prepared_);
  if (recorder_ != nullptr) {
    warnings_.ShowBy([this](const std::string& warning) { recorder_->ShowWarning(warning); });
    for (const std::string& note : follower_.TakeNotes()) {
      recorder_->RecordFallBack(note, follower_.plan());
    }
  }

  while (progress_.step < job.train.steps && !stop_agreed_) {
    SIPHON_RETURN_IF_ERROR(TrainOneStep());
    const bool last = progress_.step == job.train.steps;
    const int64_t every = job.checkpoint.every_steps;
    if ((every > 0 && (last || progress_.step % every == 0)) || stop_agreed_) {
      SIPHON_RETURN_IF_ERROR(SaveCheckpoint());
    }
  }
  if (progress_.step < job.train.steps) {
    outcome_.end = RunEnd::kStopped;
    if (outcome_.checkpoint_step != progress_.step) {
      return StoppedWithout(failed_save_);
    }
  }
  SIPHON_RETURN_IF_ERROR(follower_.Close());
  // Each host has books of its own.
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks,
                          coordinator_.Gather(follower_.host().peak()));
  outcome_.host_peak = *absl::c_max_element(peaks);
  if (recorder_ != nullptr) recorder_->Close(outcome_);
  return outcome_;
}

}  // namespace

absl::StatusOr<RunOutcome> RunWorker(const PreparedJob& prepared, const WorkerSeat& seat) {
  SetTorchThreads(static_cast<int>(prepared.job.pipeline.threads_per_worker));
  SetDeterminism(DeterminismOf(prepared.job.train));
  return WorkerRun(prepared, seat).Run();
}

}  // namespace siphon
