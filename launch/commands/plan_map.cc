#include "launch/commands/plan_map.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/drafts/maps/map_draft.h"

namespace siphon {
namespace {

// What is to be short.
absl::string_view TimeName(MappingScore score) {
  return score == MappingScore::kStepTime ? "a step" : "a longest D2D swap";
}

std::string LookedAt(const MapProof& map) {
  const bool simulates = map.score == MappingScore::kStepTime;
  return absl::StrCat(map.evaluated, map.evaluated == 1 ? " map " : " maps ",
                      simulates ? "simulated" : "calculated", ", ", map.bounded,
                      map.bounded == 1 ? " part bounded" : " parts bounded");
}

// How far the map may be from the best one.
std::string Doubt(const MapProof& map) {
  if (map.missing > map.least_missing) {
    return absl::StrCat("another map may have room for ",
                        FormatBytes(map.missing - map.least_missing), " more");
  }
  const std::optional<double> gap = GapOf(map);
  if (!gap.has_value()) return "how much better another map may be is not known";
  return absl::StrFormat("it is at most %.2f %% above the best one: no map has %s below %s",
                         100 * *gap, TimeName(map.score), FormatNanos(map.least_time));
}

}  // namespace

absl::string_view MapScoreName(MappingScore score) {
  return score == MappingScore::kStepTime ? "step_time" : "swap_time";
}

std::string MapText(const MapProof& map) {
  const std::string found =
      map.missing > Bytes(0)
          ? absl::StrCat("leaves no room for ", FormatBytes(map.missing))
          : absl::StrCat("has ", TimeName(map.score), " of ", FormatNanos(map.time));
  return absl::StrCat(found, " with the draft it was searched for; ",
                      map.proven ? "proven, no map is better" : Doubt(map), " (", LookedAt(map),
                      ")");
}

}  // namespace siphon
