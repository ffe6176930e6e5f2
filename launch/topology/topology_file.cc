#include "launch/topology/topology_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/closest_name.h"
#include "launch/config/config_tree.h"
#include "launch/config/read_text_file.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<std::string> ReadTopologyText(const std::string& path) {
  return ReadTextFile(path, "topology", Bytes(kLargestConfigBytes));
}

absl::StatusOr<Topology> LoadTopology(const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTopologyText(path));
  return ParseTopology(text, path);
}

absl::StatusOr<Topology> FindTopologyPreset(absl::string_view name) {
  std::vector<std::string> known;
  for (const TopologyPreset& preset : TopologyPresets()) {
    if (preset.name == name) {
      return ParseTopology(preset.text, absl::StrCat("configs/topologies/", name, ".yaml"));
    }
    known.emplace_back(preset.name);
  }
  const std::string closest = ClosestName(name, known);
  return absl::NotFoundError(absl::StrCat("unknown topology ", QuoteForMessage(name), "; ",
                                          closest.empty()
                                              ? absl::StrCat("known: ", absl::StrJoin(known, ", "))
                                              : absl::StrCat("did you mean '", closest, "'?")));
}

}  // namespace siphon
