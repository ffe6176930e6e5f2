#include "tests/pipeline/synthetic/synthetic_job.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "pipeline/synthetic/synthetic_stage.h"
#include "planner/status.h"

namespace siphon {

struct SyntheticJob::Shared {
  std::atomic<bool> failed{false};
  std::mutex host;
};

absl::StatusOr<std::unique_ptr<SyntheticJob>> SyntheticJob::Make(SyntheticJobParts parts) {
  std::unique_ptr<SyntheticJob> job(new SyntheticJob(std::move(parts)));
  SIPHON_RETURN_IF_ERROR(job->MakeParkings());
  SIPHON_RETURN_IF_ERROR(job->MakeWorkers());
  return job;
}

SyntheticJob::SyntheticJob(SyntheticJobParts parts)
    : parts_(std::move(parts)), shared_(std::make_unique<Shared>()) {}

SyntheticJob::~SyntheticJob() = default;

absl::Status SyntheticJob::MakeParkings() {
  SIPHON_ASSIGN_OR_RETURN(layouts_, LayOutParking(parts_.memory, parts_.schedule));
  for (int worker = 0; worker < static_cast<int>(layouts_.size()); ++worker) {
    InProcessParkingOptions options;
    if (parts_.rate_of != nullptr) {
      options.rate_of = [this, worker](const ParkingPlace& place) {
        return parts_.rate_of(WorkerId(worker), place);
      };
    }
    if (parts_.adjust_parking != nullptr) parts_.adjust_parking(WorkerId(worker), options);
    parkings_.push_back(
        std::make_unique<InProcessParking>(layouts_[static_cast<size_t>(worker)], options));
  }
  return absl::OkStatus();
}

absl::Status SyntheticJob::MakeWorkers() {
  const Schedule& schedule = parts_.schedule;
  const int workers = WorkerCount(schedule);
  WorkerLayout layout{.worker_of_stage = schedule.worker_of_stage,
                      .memory = parts_.memory,
                      .home = HomeGroupsOf(schedule, parts_.memory)};
  for (const StageRange& range : parts_.partition.stages) {
    layout.owned_parameters.push_back(range.end - range.begin);
  }
  stages_.resize(layout.worker_of_stage.size());
  const LivenessCheck check = [shared = shared_.get()] {
    return shared->failed ? absl::UnavailableError("another worker failed") : absl::OkStatus();
  };
  job_ =
      parts_.connect == nullptr ? MakeInProcessJob(workers, check) : parts_.connect(layout, check);
  if (parts_.message_rate_of != nullptr) {
    job_.transports =
        PaceTransports(std::move(job_.transports), parts_.message_rate_of, MonotonicClock());
  }
  for (int worker = 0; worker < workers; ++worker) {
    ledgers_.push_back(std::make_unique<MemoryLedger>(
        parts_.capacity.empty() ? Bytes(0) : parts_.capacity[static_cast<size_t>(worker)]));
    const WorkClock clock = parts_.make_clock();
    std::map<StageId, StageCompute*> held;
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) {
      std::unique_ptr<StageCompute>& made = stages_[static_cast<size_t>(stage.value)];
      SIPHON_ASSIGN_OR_RETURN(
          made, MakeSyntheticStage(parts_.profile, parts_.partition, stage,
                                   {.ledger = ledgers_.back().get(),
                                    .clock = clock,
                                    .host_step = HostStepOf(stage),
                                    .host = &shared_->host},
                                   StateGroupsAway(parts_.memory, layout.home, stage)));
      held[stage] = made.get();
    }
    workers_.push_back(std::make_unique<StageWorker>(
        WorkerId(worker), layout, std::move(held),
        job_.transports[static_cast<size_t>(worker)].get(),
        parkings_[static_cast<size_t>(worker)]->engine(), parts_.observer));
    SIPHON_RETURN_IF_ERROR(workers_.back()->state().SendAway());
    HostSteps& host_steps = workers_.back()->host_steps();
    SIPHON_RETURN_IF_ERROR(host_steps.Begin(
        parkings_[static_cast<size_t>(worker)]->HostMemory(host_steps.MemoryNeeded())));
  }
  return absl::OkStatus();
}

Nanos SyntheticJob::HostStepOf(StageId stage) const {
  return parts_.host_step.empty() ? Nanos(0) : parts_.host_step[static_cast<size_t>(stage.value)];
}

SyntheticStep SyntheticJob::Run(const Schedule& programs, StepMode mode, int64_t step,
                                const StepEnd& end) {
  using Clock = std::chrono::steady_clock;
  const StepInputs inputs{
      .step = step,
      .mode = mode,
      .microbatches = std::vector<MicrobatchData>(static_cast<size_t>(programs.microbatches))};
  SyntheticStep result;
  result.reports.resize(workers_.size());
  Clock::time_point begin;
  std::barrier ready(static_cast<std::ptrdiff_t>(workers_.size()),
                     [&begin]() noexcept { begin = Clock::now(); });
  RunInThreads(job_, [&](WorkerId me, Transport&) {
    const size_t worker = static_cast<size_t>(me.value);
    ready.arrive_and_wait();
    result.reports[worker] = workers_[worker]->RunStep(programs.programs[worker], inputs, end);
    if (!result.reports[worker].ok()) shared_->failed = true;
  });
  result.time =
      Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  return result;
}

}  // namespace siphon
