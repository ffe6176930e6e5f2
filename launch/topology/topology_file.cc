#include "launch/topology/topology_file.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/closest_name.h"
#include "launch/config/config_tree.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<std::string> ReadTopologyText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  // One byte more than allowed shows that there is more; a larger file is not read.
  std::string text(kLargestConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read; write the path of a file"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLargestConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has more than ", kLargestConfigBytes, " bytes; a topology has less"));
  }
  return text;
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
