#include "launch/topology/topology_file.h"

#include <algorithm>
#include <utility>

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

namespace {

// "ASSUMED: ..", "note: .."
bool BeginsWithLabel(absl::string_view line) {
  const size_t word = std::min(line.find(' '), line.size());
  return word > 1 && line[word - 1] == ':';
}

class RemarkReader {
 public:
  void Add(absl::string_view line) {
    line = absl::StripAsciiWhitespace(line);
    const bool is_comment = absl::StartsWith(line, "#");
    if (!is_comment) {
      EndComment();
      is_first_ = false;
      const size_t comment = line.find('#');
      if (comment == absl::string_view::npos) return;
      if (absl::StrContains(line.substr(comment), kAssumed)) Keep(line);
      return;
    }
    while (absl::ConsumePrefix(&line, "#") || absl::ConsumePrefix(&line, " ")) {
    }
    const bool goes_on = !comment_.empty() && comment_.back() != '.' && !BeginsWithLabel(line);
    if (line.empty() || !goes_on) EndComment();
    absl::StrAppend(&comment_, comment_.empty() ? "" : " ", line);
  }

  std::vector<std::string> Finish() {
    EndComment();
    return std::move(remarks_);
  }

 private:
  static constexpr absl::string_view kAssumed = "ASSUMED";

  void EndComment() {
    if (is_first_ || absl::StrContains(comment_, kAssumed)) Keep(comment_);
    comment_.clear();
  }

  void Keep(absl::string_view remark) {
    if (remark.empty() || absl::c_linear_search(remarks_, remark)) return;
    remarks_.emplace_back(remark);
  }

  std::vector<std::string> remarks_;
  std::string comment_;   // of the lines so far that belong together
  bool is_first_ = true;  // nothing but comments so far
};

}  // namespace

std::vector<std::string> TopologyRemarks(absl::string_view text) {
  RemarkReader reader;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) reader.Add(line);
  return reader.Finish();
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
