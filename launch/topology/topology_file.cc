#include "launch/topology/topology_file.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

std::vector<std::string> TopologyRemarks(absl::string_view text) {
  std::vector<std::string> remarks;
  bool is_first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    const bool is_comment = absl::StartsWith(line, "#");
    is_first = is_first && is_comment;
    const size_t comment = line.find('#');
    const bool assumes =
        comment != absl::string_view::npos && absl::StrContains(line.substr(comment), "ASSUMED");
    if (!is_first && !assumes) continue;
    while (absl::ConsumePrefix(&line, "#") || absl::ConsumePrefix(&line, " ")) {
    }
    if (line.empty() || absl::c_linear_search(remarks, line)) continue;
    remarks.emplace_back(line);
  }
  return remarks;
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
