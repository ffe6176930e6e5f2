#include "launch/run/same_job.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/checkpoint/checksum.h"
#include "launch/config/load_job_config.h"
#include "planner/plan_text.h"
#include "planner/status.h"

namespace siphon {

absl::Status CheckSameJob(const PreparedJob& prepared, MpiWorld& world) {
  const std::string mine = absl::StrCat(Checksum(WriteJobConfig(prepared.job)), " ",
                                        Checksum(ToString(prepared.plan_text)));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> all, world.AllGatherText(mine));
  const std::pair<std::string, std::string> first = absl::StrSplit(all[0], ' ');
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::pair<std::string, std::string> other = absl::StrSplit(all[rank], ' ');
    if (other.first != first.first) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks 0 and ", rank,
                       " were started with different jobs; all take the same job file and --set"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("ranks 0 and ", rank,
                     " plan the same job differently: their programs or machines are not the "
                     "same; siphon plan --output PLAN and --set memory.plan=PLAN give all one "
                     "plan"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
