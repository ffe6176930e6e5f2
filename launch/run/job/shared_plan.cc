#include "launch/run/job/shared_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checksum.h"
#include "launch/config/load_job_config.h"
#include "launch/process/exit_codes.h"
#include "launch/process/rank_process.h"
#include "launch/process/stop_signal.h"
#include "planner/plan_text.h"
#include "planner/status.h"

namespace siphon {
namespace {

// mpirun needs some of it to end the others.
constexpr Nanos kBetweenReports(10'000'000'000);

// Ends the process, while this is there, where others have not come for so long that nobody knows
// whether they will: MPI itself waits for ever. The lowest of those that wait says so first, and
// its end ends the others.
class EndIfAlone {
 public:
  // 0: never.
  explicit EndIfAlone(Nanos timeout) {
    if (timeout == Nanos(0)) return;
    thread_ = std::thread([this, timeout] {
      const int rank = AnnouncedRank();
      if (stop_.StoppedWithin(timeout + kBetweenReports * std::max(rank, 0))) return;
      std::fprintf(stderr,
                   "siphon: rank %d: not all ranks of the job have come for %s "
                   "(launch.stall_timeout)\n",
                   rank, FormatNanos(timeout).c_str());
      _exit(kExitWorkerLost);
    });
  }
  ~EndIfAlone() {
    stop_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  EndIfAlone(const EndIfAlone&) = delete;
  EndIfAlone& operator=(const EndIfAlone&) = delete;

 private:
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace

std::string PlanThatWasFound(const PreparedJob& prepared) {
  const bool found = prepared.job.memory.plan.empty() && !prepared.plan.memory.stages.empty();
  return found ? ToString(prepared.plan_text) : "";
}

absl::Status SharedPlan::Meet(const JobConfig& job) {
  patience_ = {job.launch.heartbeat_timeout, job.launch.stall_timeout};
  const EndIfAlone deadline(job.launch.stall_timeout);
  SIPHON_ASSIGN_OR_RETURN(world_, MpiWorld::Init(argc_, argv_));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> jobs,
                          world_->AllGatherText(absl::StrCat(Checksum(WriteJobConfig(job)))));
  for (size_t rank = 1; rank < jobs.size(); ++rank) {
    if (jobs[rank] == jobs[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ranks 0 and ", rank,
                     " were started with different jobs; all take the same job file and --set"));
  }
  world_->BeginPulse(patience_);
  return absl::OkStatus();
}

// `plan` of rank 0.
absl::StatusOr<std::string> SharedPlan::Share(const std::string& plan) {
  shared_ = true;
  SIPHON_RETURN_IF_ERROR(world_->WaitForAll(patience_));
  SIPHON_ASSIGN_OR_RETURN(std::vector<std::string> plans,
                          world_->AllGatherText(world_->rank() == 0 ? plan : ""));
  return std::move(plans[0]);
}

absl::StatusOr<std::string> SharedPlan::Ask(const JobConfig& job) {
  SIPHON_RETURN_IF_ERROR(Meet(job));
  if (world_->rank() == 0) return "";
  return Share("");
}

absl::StatusOr<std::unique_ptr<MpiWorld>> SharedPlan::Join(const PreparedJob& prepared) {
  if (world_ == nullptr) SIPHON_RETURN_IF_ERROR(Meet(prepared.job));
  if (!shared_) {
    // Of a parent's they all have it.
    const std::string plan = Supervised() ? "" : PlanThatWasFound(prepared);
    SIPHON_RETURN_IF_ERROR(Share(plan).status());
  }
  return std::move(world_);
}

absl::Status CheckSamePlan(const PreparedJob& prepared, MpiWorld& world) {
  SIPHON_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      world.AllGatherText(absl::StrCat(Checksum(ToString(prepared.plan_text)))));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ranks 0 and ", rank,
                     " plan the same job differently: their programs or machines are not the "
                     "same; siphon plan --output PLAN and --set memory.plan=PLAN give all one "
                     "plan"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
