#include "launch/run/shared_plan.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/checkpoint/checksum.h"
#include "launch/config/load_job_config.h"
#include "launch/process/rank_process.h"
#include "planner/plan_text.h"
#include "planner/status.h"

namespace siphon {

std::string PlanThatWasFound(const PreparedJob& prepared) {
  const bool found = prepared.job.memory.plan.empty() && !prepared.plan.memory.stages.empty();
  return found ? ToString(prepared.plan_text) : "";
}

absl::StatusOr<std::string> SharedPlan::Share(const JobConfig& job, const std::string& plan) {
  SIPHON_ASSIGN_OR_RETURN(world_, MpiWorld::Init(argc_, argv_));
  SIPHON_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      world_->AllGatherText(absl::StrCat(Checksum(WriteJobConfig(job)), " ", plan)));
  std::string found;
  std::string job_of_first;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const std::pair<std::string, std::string> theirs =
        absl::StrSplit(all[rank], absl::MaxSplits(' ', 1));
    if (rank == 0) job_of_first = theirs.first;
    if (theirs.first != job_of_first) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks 0 and ", rank,
                       " were started with different jobs; all take the same job file and --set"));
    }
    if (found.empty()) found = theirs.second;
  }
  return found;
}

absl::StatusOr<std::string> SharedPlan::Ask(const JobConfig& job) {
  if (world_ != nullptr) return "";
  return Share(job, "");
}

absl::StatusOr<std::unique_ptr<MpiWorld>> SharedPlan::Join(const PreparedJob& prepared) {
  if (world_ == nullptr) {
    // Of a parent's they all have it.
    const std::string plan = Supervised() ? "" : PlanThatWasFound(prepared);
    SIPHON_RETURN_IF_ERROR(Share(prepared.job, plan).status());
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
