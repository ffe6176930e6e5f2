#include "launch/run/trainer.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "launch/config/check_job_config.h"
#include "launch/process/end_output.h"
#include "launch/process/exit_codes.h"
#include "launch/run/command_line.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/job_limits.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/parking/shared_by_threads.h"
#include "launch/run/parking/throttle_messages.h"
#include "launch/run/place_workers.h"
#include "launch/run/run_worker.h"
#include "launch/run/train_command.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "pipeline/transport/in_process_transport.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The first failure of any worker ends the waits of all others.
class FirstFailure {
 public:
  void Record(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status.ok() || !first_.ok()) return;
    first_ = status;
    failed_.store(true, std::memory_order_release);
  }
  absl::Status Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_;
  }
  absl::Status Check() const {
    if (!failed_.load(std::memory_order_acquire)) return absl::OkStatus();
    return absl::UnavailableError("another worker failed");
  }

 private:
  mutable std::mutex mutex_;
  absl::Status first_;
  std::atomic<bool> failed_{false};
};

}  // namespace

Trainer::Trainer(JobConfig job, ModelFactory factory)
    : job_(std::move(job)), factory_(std::move(factory)) {}

absl::StatusOr<RunOutcome> Trainer::Train() {
  InstallCountingAllocator();
  SIPHON_RETURN_IF_ERROR(CheckJobConfig(
      job_, MachineLimits(factory_ ? ModelSource::kProgram : ModelSource::kJobFile)));
  SIPHON_RETURN_IF_ERROR(CheckOneServer(job_));
  SIPHON_ASSIGN_OR_RETURN(const PreparedJob prepared, PrepareJob(job_, factory_));
  if (job_.pipeline.backend == "cuda") {
    return ConfigError(job_, "pipeline.backend",
                       "cuda has a process for each worker, which `siphon train` starts; workers "
                       "that are threads compute on the CPU");
  }
  const int workers = WorkerCount(prepared.plan.training);
  FirstFailure failure;
  SIPHON_ASSIGN_OR_RETURN(const HostMapping lent, HostMapping::Make(ParkingRegionBytes(prepared)));
  auto transports = MakeInProcessTransports(workers, [&failure] { return failure.Check(); });
  for (std::unique_ptr<Transport>& transport : transports) {
    transport = ThrottleMessages(prepared, std::move(transport), lent.bytes());
  }
  SharedByThreads shared(workers);
  std::vector<absl::StatusOr<RunOutcome>> outcomes(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      WorkerSeat seat{
          .me = WorkerId(worker), .transport = transports[worker].get(), .lent = lent.bytes()};
      seat.more_shared = [&shared, worker](Bytes bytes) {
        return shared.More(WorkerId(worker), bytes);
      };
      // Before its tensors go: others may still send to them, or receive from them.
      seat.at_failure = [&failure, &transports, worker](const absl::Status& status) {
        failure.Record(status);
        transports[worker].reset();
      };
      outcomes[worker] = RunWorker(prepared, seat);
      failure.Record(outcomes[worker].status());
    });
  }
  for (std::thread& thread : threads) thread.join();
  SIPHON_RETURN_IF_ERROR(failure.Get());
  return outcomes[0];
}

namespace {

int RunMain(int argc, char** argv, const ModelFactory& factory) {
  std::vector<std::string> arguments = {"train"};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  const auto parsed = ParseCommandLine(arguments);
  if (!parsed.ok()) {
    std::fprintf(stderr, "siphon: %s\n", std::string(parsed.status().message()).c_str());
    return kExitBadInput;
  }
  if (const auto* answered = std::get_if<Answered>(&*parsed)) {
    std::fputs(answered->text.c_str(), stdout);
    return kExitDone;
  }
  return TrainCommand(&argc, &argv, std::get<TrainArguments>(*parsed), factory);
}

}  // namespace

int TrainerMain(int argc, char** argv, const ModelFactory& factory) {
  InstallCountingAllocator();
  return EndOutput(RunMain(argc, argv, factory));
}

}  // namespace siphon
