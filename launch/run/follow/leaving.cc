#include "launch/run/follow/leaving.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launch/run/job/name_of_place.h"

namespace siphon {

std::string ReasonOf(const Leaving& leaving, const DeviceMapping& mapping) {
  const std::string place = NameOfPlace(mapping, leaving.left.place);
  const int owner = leaving.left.owner.value;
  if (leaving.slow_factor > 0) {
    return absl::StrFormat("worker %d: the link to %s is %.1fx slower than planned", owner, place,
                           leaving.slow_factor);
  }
  if (leaving.left.place.tier != Placement::kPeerSwap) {
    return absl::StrCat("worker ", owner, ": ", place,
                        leaving.left.place.tier == Placement::kHostSwap
                            ? " does not give the memory that is planned"
                            : " do not give the room that is planned");
  }
  return absl::StrCat(
      "worker ", owner, ": ", place,
      leaving.says == leaving.left.owner ? " is out of its reach" : " does not lend its memory");
}

// "4 groups go to the host and 1 group is computed again"
std::string WhereGroupsGo(const std::map<Placement, int>& moved) {
  std::vector<std::string> parts;
  for (const auto& [to, groups] : moved) {
    const bool one = groups == 1;
    const std::string count = absl::StrCat(groups, one ? " group " : " groups ");
    if (to == Placement::kRecompute) {
      parts.push_back(absl::StrCat(count, one ? "is" : "are", " computed again"));
    } else {
      parts.push_back(absl::StrCat(count, one ? "goes" : "go", " to ",
                                   to == Placement::kHostSwap   ? "the host"
                                   : to == Placement::kPeerSwap ? "other workers"
                                                                : "the drives"));
    }
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace siphon
