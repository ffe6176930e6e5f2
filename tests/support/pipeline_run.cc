#include "tests/support/pipeline_run.h"

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "pipeline/loss_scale.h"
#include "pipeline/schedules/build_schedule.h"
#include "pipeline/torch/layers.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "pipeline/transport/in_process_transport.h"
#include "planner/lower_schedule.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"
#include "tests/support/in_process_parking.h"

namespace siphon {
namespace {

using StageMap = std::map<StageId, std::unique_ptr<StageCompute>>;

// The first error of any worker; it ends all of them.
class FirstError {
 public:
  void Set(const absl::Status& status) {
    const absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
  }
  absl::Status Get() const {
    const absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

std::vector<int> OwnedParameters(const ModelSpec& model, const StagePartition& partition) {
  std::vector<int> owned(partition.stages.size());
  for (const Parameter& parameter : CanonicalParameters(model)) {
    ++owned[StageOfLayer(partition, parameter.uses.front().layer).value];
  }
  return owned;
}

// A tensor of a stage's state, with its bytes as they were in the end.
struct FinalTensor {
  StateTensor tensor;
  std::vector<std::byte> bytes;
};

struct WorkerOutcome {
  std::vector<StepReport> reports;
  std::vector<float> evaluation_losses;
  StageMap stages;
  std::map<StageId, std::vector<FinalTensor>> state;
};

struct Job {
  const Model& model;
  const TrainingPlan& plan;
  const std::vector<StepInputs>& steps;
  const PipelineSettings& settings;
  WorkerLayout layout;
};

absl::Status ReadState(StageWorker& worker, const std::map<StageId, StageCompute*>& stages,
                       WorkerOutcome& outcome) {
  for (const auto& [stage, compute] : stages) {
    const std::vector<StateTensor> tensors = compute->State();
    for (size_t index = 0; index < tensors.size(); ++index) {
      SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> bytes,
                              worker.state().Open(stage, index, StateSwaps::Access::kRead));
      outcome.state[stage].push_back({tensors[index], {bytes.begin(), bytes.end()}});
    }
  }
  return worker.state().Close();
}

absl::Status RunWorker(const Job& job, WorkerId me, Transport* transport, WorkerOutcome& outcome) {
  SetTorchThreads(job.settings.threads_per_worker);
  const auto& ledgers = job.settings.ledgers;
  const auto ledger = ledgers.empty() ? nullptr : ledgers[me.value];
  const LedgerScope scope(ledger);
  std::map<StageId, StageCompute*> stages;
  for (const StageId stage : StagesOf(job.plan.training, me)) {
    SIPHON_ASSIGN_OR_RETURN(
        outcome.stages[stage],
        MakeTorchStage(job.model, job.plan.partition, stage, job.settings.seed,
                       job.settings.optimizer,
                       StateGroupsAway(job.plan.memory, job.layout.home, stage)));
    stages[stage] = outcome.stages[stage].get();
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<WorkerParking> parking,
                          LayOutParking(job.plan.memory, job.plan.training));
  InProcessParking parked(parking[me.value]);
  StageWorker worker(me, job.layout, stages, transport, parked.engine(), {});
  SIPHON_RETURN_IF_ERROR(worker.state().SendAway());
  SIPHON_RETURN_IF_ERROR(
      worker.host_steps().Begin(parked.HostMemory(worker.host_steps().MemoryNeeded())));
  const bool scaled = job.settings.loss_scale > 0;
  LossScale scale{.scale = scaled ? job.settings.loss_scale : 1};
  for (size_t step = 0; step < job.steps.size(); ++step) {
    const StepEnd end{.update = static_cast<int64_t>(step) + 1 - scale.skipped_steps,
                      .learning_rate = job.settings.learning_rates[step],
                      .clip_norm = job.settings.clip_norm,
                      .loss_scale = scale.scale,
                      .overflow = scaled ? OverflowRule::kSkip : OverflowRule::kUpdate};
    if (ledger != nullptr) ledger->ResetPeak();
    StepInputs inputs = job.steps[step];
    inputs.loss_scale = scale.scale;
    SIPHON_ASSIGN_OR_RETURN(StepReport report,
                            worker.RunStep(job.plan.training.programs[me.value], inputs, end));
    if (scaled) {
      scale = AfterStep(scale, report.skipped ? StepTaken::kSkipped : StepTaken::kUpdated);
    }
    outcome.reports.push_back(std::move(report));
  }
  if (job.settings.evaluate_after) {
    StepInputs inputs = job.steps.back();
    inputs.mode = StepMode::kEvaluate;
    SIPHON_ASSIGN_OR_RETURN(StepReport report,
                            worker.RunStep(job.plan.evaluation.programs[me.value], inputs, {}));
    outcome.evaluation_losses = std::move(report.losses);
  }
  return ReadState(worker, stages, outcome);
}

// Whether `narrow` is what LibTorch rounds the float32 numbers `wide` to.
bool IsRounded(const std::vector<std::byte>& wide, const std::vector<std::byte>& narrow,
               at::ScalarType type) {
  const auto count = static_cast<int64_t>(wide.size() / sizeof(float));
  const at::Tensor rounded =
      at::from_blob(const_cast<std::byte*>(wide.data()), {count}, at::kFloat).to(type);
  return narrow.size() == rounded.nbytes() &&
         std::memcmp(narrow.data(), rounded.const_data_ptr(), narrow.size()) == 0;
}

void CollectState(const std::vector<FinalTensor>& state, at::ScalarType computed,
                  PipelineResult& result) {
  const std::vector<std::byte>* narrow = nullptr;  // of the master behind it
  for (const auto& [tensor, bytes] : state) {
    if (tensor.spec.dtype != DType::kFloat32) {
      narrow = &bytes;
      continue;
    }
    if (tensor.kind == StateTensor::Kind::kMaster && !IsRounded(bytes, *narrow, computed)) {
      result.diverged_copies.push_back(absl::StrCat(tensor.name, ", not its master rounded"));
    }
    NamedFloats& values = tensor.kind == StateTensor::Kind::kFirstMoment    ? result.first_moments
                          : tensor.kind == StateTensor::Kind::kSecondMoment ? result.second_moments
                                                                            : result.parameters;
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    if (tensor.owned) {
      values[tensor.name] = std::move(numbers);
    } else if (const auto& owned = values[tensor.name];  // an earlier stage, collected before
               owned.size() != numbers.size() ||
               std::memcmp(owned.data(), numbers.data(), bytes.size()) != 0) {
      result.diverged_copies.push_back(tensor.name);
    }
  }
}

PipelineResult Collect(const Job& job, const std::vector<WorkerOutcome>& outcomes) {
  PipelineResult result;
  const WorkerId last = job.plan.training.worker_of_stage.back();
  for (size_t step = 0; step < job.steps.size(); ++step) {
    PipelineStepResult& collected = result.steps.emplace_back();
    const StepReport& report = outcomes[last.value].reports[step];
    collected.microbatch_losses = report.losses;
    for (const float loss : report.losses) collected.loss += static_cast<double>(loss);
    collected.gradient_norm = report.gradient_norm;
    collected.skipped = report.skipped;
    for (const WorkerOutcome& outcome : outcomes) {
      collected.peak_live_microbatches.push_back(outcome.reports[step].peak_live_microbatches);
    }
  }
  result.evaluation_losses = outcomes[last.value].evaluation_losses;
  for (int stage = 0; stage < StageCount(job.plan.training); ++stage) {
    const WorkerId worker = job.plan.training.worker_of_stage[stage];
    CollectState(outcomes[worker.value].state.at(StageId(stage)), ToScalarType(job.model.computed),
                 result);
  }
  return result;
}

// Through the rings of the layout, or rendezvous without any.
absl::StatusOr<std::vector<std::unique_ptr<Transport>>> MakeTransports(int workers,
                                                                       const RingLayout& layout,
                                                                       absl::Span<std::byte> region,
                                                                       FirstError& error) {
  const auto check = [&error] { return error.Get(); };
  if (layout.rings.empty()) return MakeInProcessTransports(workers, check);
  std::vector<std::unique_ptr<Transport>> transports(workers);
  for (int worker = 0; worker < workers; ++worker) {
    SIPHON_ASSIGN_OR_RETURN(transports[worker],
                            MakeRingTransport(WorkerId(worker), region, layout, check));
  }
  return transports;
}

}  // namespace

absl::StatusOr<TrainingPlan> PlanAround(const ModelSpec& model, const StagePartition& partition,
                                        const Schedule& compute_only, NormPlace norm) {
  TrainingPlan plan;
  plan.partition = partition;
  plan.shared_parameters = SharedParameters(model, partition);
  std::set<StageId> sharing;
  for (const SharedParameter& parameter : plan.shared_parameters) {
    sharing.insert(parameter.stages.begin(), parameter.stages.end());
  }
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(compute_only, SchedulePurpose::kTraining));
  SIPHON_ASSIGN_OR_RETURN(plan.training, InsertCommunication(compute_only));
  plan.training =
      AppendOptimizerStep(std::move(plan.training), {sharing.begin(), sharing.end()}, norm);
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(plan.training, SchedulePurpose::kTraining));
  SIPHON_ASSIGN_OR_RETURN(plan.evaluation, InsertCommunication(BuildForwardOnly(
                                               compute_only, compute_only.microbatches)));
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(plan.evaluation, SchedulePurpose::kForwardOnly));
  return plan;
}

absl::StatusOr<PipelineResult> RunPipeline(const ModelOptions& options, const TrainingPlan& plan,
                                           const std::vector<StepInputs>& steps,
                                           const PipelineSettings& settings) {
  if (settings.learning_rates.size() != steps.size()) {
    return absl::InvalidArgumentError(absl::StrCat(settings.learning_rates.size(),
                                                   " learning rates for ", steps.size(), " steps"));
  }
  SIPHON_ASSIGN_OR_RETURN(Model model, BuildModel(options));
  SetPrecision(settings.precision, HeldVectors::kFloat32, model);
  const Job job{model,
                plan,
                steps,
                settings,
                {plan.training.worker_of_stage, plan.shared_parameters,
                 OwnedParameters(model.spec, plan.partition), plan.memory,
                 HomeGroupsOf(plan.training, plan.memory)}};
  const int workers = WorkerCount(plan.training);
  FirstError error;
  const RingLayout layout = LayOutRings(settings.rings);
  std::vector<std::byte> region(layout.region_bytes.value);
  SIPHON_ASSIGN_OR_RETURN(const auto transports,
                          MakeTransports(workers, layout, absl::MakeSpan(region), error));
  std::vector<WorkerOutcome> outcomes(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      error.Set(RunWorker(job, WorkerId(worker), transports[worker].get(), outcomes[worker]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  SIPHON_RETURN_IF_ERROR(error.Get());
  return Collect(job, outcomes);
}

}  // namespace siphon
