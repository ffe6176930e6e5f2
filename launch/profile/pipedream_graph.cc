#include "launch/profile/pipedream_graph.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/config/closest_name.h"
#include "launch/config/read_text_file.h"
#include "launch/profile/profile_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr absl::string_view kSeparator = " -- ";
constexpr absl::string_view kNodeMark = "_compute_time=";
constexpr absl::string_view kFigures = " -- forward_compute_time=";
constexpr absl::string_view kNodeForm =
    "id -- description -- forward_compute_time=MS, backward_compute_time=MS, "
    "activation_size=BYTES, "
    "parameter_size=BYTES";
constexpr double kNanosPerMilli = 1e6;
constexpr double kLargestFigure = 0x1p62;

// A piece of the file that knows where it stands.
struct Place {
  absl::string_view file;
  absl::string_view line_text;
  int line = 0;

  absl::Status Error(absl::string_view at, absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", line, ":", at.data() - line_text.data() + 1, ": ", message));
  }
};

// "12.5" at the head of `rest`, of which it is cut off, times `scale`.
absl::StatusOr<int64_t> TakeFigure(const Place& place, absl::string_view what,
                                   absl::string_view end_marks, double scale,
                                   absl::string_view& rest) {
  const size_t end = rest.find_first_of(end_marks);
  const absl::string_view text = absl::StripAsciiWhitespace(rest.substr(0, end));
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return place.Error(rest, absl::StrCat(what, ": ", QuoteForMessage(text),
                                          " is not a number; write one such as 12.500"));
  }
  if (value < 0) {
    return place.Error(rest, absl::StrCat(what, ": ", QuoteForMessage(text),
                                          " is negative; times and sizes are 0 or more"));
  }
  if (value * scale > kLargestFigure) {
    return place.Error(rest, absl::StrCat(what, ": ", QuoteForMessage(text),
                                          " is too large; it must stay below 2^62 ns or bytes"));
  }
  rest.remove_prefix(end == absl::string_view::npos ? rest.size() : end);
  return static_cast<int64_t>(std::llround(value * scale));
}

// "[1.0; 2.0]" or "3.0".
absl::StatusOr<int64_t> TakeSizes(const Place& place, absl::string_view what,
                                  absl::string_view& rest) {
  if (!absl::ConsumePrefix(&rest, "[")) return TakeFigure(place, what, ",", 1, rest);
  int64_t sum = 0;
  while (true) {
    const absl::string_view at = rest;
    SIPHON_ASSIGN_OR_RETURN(const int64_t size, TakeFigure(place, what, ";],", 1, rest));
    if (size > static_cast<int64_t>(kLargestFigure) - sum) {
      return place.Error(at, absl::StrCat(what, ": the list adds up to more than 2^62 bytes"));
    }
    sum += size;
    if (absl::ConsumePrefix(&rest, "]")) return sum;
    if (absl::ConsumePrefix(&rest, ";")) continue;
    return place.Error(rest, absl::StrCat(what, ": the list has no end; write [BYTES; BYTES]"));
  }
}

absl::Status TakeKey(const Place& place, absl::string_view key, absl::string_view& rest) {
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (absl::ConsumePrefix(&rest, key) && absl::ConsumePrefix(&rest, "=")) return absl::OkStatus();
  const absl::string_view found = rest.substr(0, rest.find_first_of("=,"));
  return place.Error(rest, absl::StrCat("'", key, "=' must stand here, not ",
                                        QuoteForMessage(found), "; a node is: ", kNodeForm));
}

absl::Status TakeComma(const Place& place, absl::string_view& rest) {
  if (absl::ConsumePrefix(&rest, ",")) return absl::OkStatus();
  return place.Error(rest, absl::StrCat("a comma must stand here; a node is: ", kNodeForm));
}

// " -- stage_id=3", which an optimizer has added.
absl::Status TakeAnnotation(const Place& place, absl::string_view rest) {
  rest = absl::StripAsciiWhitespace(rest);
  if (rest.empty()) return absl::OkStatus();
  const absl::string_view whole = rest;
  int64_t number = 0;
  if (absl::ConsumePrefix(&rest, "-- ") &&
      (absl::ConsumePrefix(&rest, "stage_id=") || absl::ConsumePrefix(&rest, "vlayer_id=")) &&
      absl::SimpleAtoi(rest, &number)) {
    return absl::OkStatus();
  }
  return place.Error(whole, absl::StrCat(QuoteForMessage(whole), " follows the figures; only '",
                                         "-- stage_id=N' may"));
}

// Results that are another tensor seen differently.
bool OwnsItsOutput(absl::string_view description) {
  for (const absl::string_view view : {"Size(", "View(", "Transpose(", "__getitem__("}) {
    if (absl::StartsWith(description, view)) return false;
  }
  return !absl::StrContains(description, "inplace");
}

class Reader {
 public:
  explicit Reader(absl::string_view file) : file_(file) {}

  absl::StatusOr<ProfileGraph> Read(absl::string_view text) {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const Place place{file_, line, ++number};
      const absl::string_view content = absl::StripAsciiWhitespace(line);
      if (content.empty()) continue;
      SIPHON_RETURN_IF_ERROR(absl::StrContains(content, kNodeMark) ? ReadNode(place, content)
                                                                   : ReadEdge(place, content));
    }
    if (graph_.nodes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ": has no node; a node is: ", kNodeForm));
    }
    SIPHON_RETURN_IF_ERROR(LinkEdges());
    MarkInputs();
    if (const absl::Status checked = CheckGraph(graph_); !checked.ok()) {
      return Annotate(checked, file_);
    }
    return std::move(graph_);
  }

 private:
  struct WrittenEdge {
    Place place;
    absl::string_view producer;
    absl::string_view consumer;
  };

  absl::Status ReadNode(const Place& place, absl::string_view content) {
    const size_t id_end = content.find(kSeparator);
    const size_t figures = content.rfind(kFigures);
    if (figures == absl::string_view::npos || id_end >= figures) {
      return place.Error(content, absl::StrCat("is not a node; a node is: ", kNodeForm));
    }
    GraphNode node;
    node.name = std::string(absl::StripAsciiWhitespace(content.substr(0, id_end)));
    const size_t description = id_end + kSeparator.size();
    node.description = std::string(content.substr(description, figures - description));
    absl::string_view rest = content.substr(figures + kSeparator.size());
    SIPHON_RETURN_IF_ERROR(ReadFigures(place, rest, node));
    const auto [known, is_new] = index_of_.emplace(node.name, graph_.nodes.size());
    if (!is_new) {
      return place.Error(content,
                         absl::StrCat("node ", QuoteForMessage(node.name), " stands on line ",
                                      lines_[known->second], " already; names are unique"));
    }
    lines_.push_back(place.line);
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  static absl::Status ReadFigures(const Place& place, absl::string_view rest, GraphNode& node) {
    SIPHON_RETURN_IF_ERROR(TakeKey(place, "forward_compute_time", rest));
    SIPHON_ASSIGN_OR_RETURN(node.forward.value,
                            TakeFigure(place, "forward_compute_time", ",", kNanosPerMilli, rest));
    SIPHON_RETURN_IF_ERROR(TakeComma(place, rest));
    SIPHON_RETURN_IF_ERROR(TakeKey(place, "backward_compute_time", rest));
    SIPHON_ASSIGN_OR_RETURN(node.backward.value,
                            TakeFigure(place, "backward_compute_time", ",", kNanosPerMilli, rest));
    SIPHON_RETURN_IF_ERROR(TakeComma(place, rest));
    SIPHON_RETURN_IF_ERROR(TakeKey(place, "activation_size", rest));
    SIPHON_ASSIGN_OR_RETURN(node.output.value, TakeSizes(place, "activation_size", rest));
    SIPHON_RETURN_IF_ERROR(TakeComma(place, rest));
    SIPHON_RETURN_IF_ERROR(TakeKey(place, "parameter_size", rest));
    SIPHON_ASSIGN_OR_RETURN(node.parameters.value,
                            TakeFigure(place, "parameter_size", " ", 1, rest));
    SIPHON_RETURN_IF_ERROR(TakeAnnotation(place, rest));
    node.training_state = node.parameters + node.parameters;  // a gradient and a momentum
    if (OwnsItsOutput(node.description)) node.stash = node.output;
    return absl::OkStatus();
  }

  absl::Status ReadEdge(const Place& place, absl::string_view content) {
    const std::vector<absl::string_view> ends = absl::StrSplit(content, kSeparator);
    if (ends.size() != 2 || ends[0].empty() || ends[1].empty()) {
      return place.Error(content, absl::StrCat(QuoteForMessage(content),
                                               " is neither a node nor an edge; an edge is: "
                                               "producer -- consumer"));
    }
    edges_.push_back(
        {place, absl::StripAsciiWhitespace(ends[0]), absl::StripAsciiWhitespace(ends[1])});
    return absl::OkStatus();
  }

  absl::StatusOr<int> FindNode(const Place& place, absl::string_view name) const {
    const auto found = index_of_.find(name);
    if (found != index_of_.end()) return static_cast<int>(found->second);
    return place.Error(
        name, absl::StrCat("no node is called ", QuoteForMessage(name), "; the file has ",
                           graph_.nodes.size(), " nodes, from '", graph_.nodes.front().name,
                           "' to '", graph_.nodes.back().name, "'"));
  }

  absl::Status LinkEdges() {
    std::set<std::pair<int, int>> seen;
    for (const WrittenEdge& edge : edges_) {
      SIPHON_ASSIGN_OR_RETURN(const int producer, FindNode(edge.place, edge.producer));
      SIPHON_ASSIGN_OR_RETURN(const int consumer, FindNode(edge.place, edge.consumer));
      if (producer == consumer) {
        return edge.place.Error(
            edge.producer, absl::StrCat("node '", edge.producer, "' cannot take its own output"));
      }
      if (seen.emplace(producer, consumer).second) graph_.edges.push_back({producer, consumer});
    }
    return absl::OkStatus();
  }

  void MarkInputs() {
    std::vector<bool> has_producer(graph_.nodes.size(), false);
    for (const GraphEdge& edge : graph_.edges) has_producer[edge.consumer] = true;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      GraphNode& node = graph_.nodes[index];
      if (has_producer[index] || !absl::StartsWith(node.description, "Input")) continue;
      node = {.name = node.name, .description = node.description, .role = NodeRole::kInput};
    }
  }

  absl::string_view file_;
  ProfileGraph graph_;
  std::vector<int> lines_;  // of each node
  std::map<std::string, size_t, std::less<>> index_of_;
  std::vector<WrittenEdge> edges_;
};

}  // namespace

absl::StatusOr<ProfileGraph> ParsePipeDreamGraph(absl::string_view text, absl::string_view name) {
  return Reader(name).Read(text);
}

bool LooksLikePipeDreamGraph(absl::string_view text) {
  return absl::StrContains(text, kNodeMark) || absl::StrContains(text, kSeparator);
}

absl::StatusOr<ProfileGraph> LoadProfileGraph(const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, "profile"));
  if (LooksLikePipeDreamGraph(text)) return ParsePipeDreamGraph(text, path);
  SIPHON_ASSIGN_OR_RETURN(const ProfileFile profile, ParseProfile(text, path));
  ProfileGraph graph = ChainOf(profile.model);
  if (const absl::Status checked = CheckGraph(graph); !checked.ok()) return Annotate(checked, path);
  return graph;
}

}  // namespace siphon
