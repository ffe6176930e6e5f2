#ifndef SIPHON_PLANNER_PLAN_FILE_PLAN_WORDS_H_
#define SIPHON_PLANNER_PLAN_FILE_PLAN_WORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// A line of a plan file without its comment.
struct PlanLine {
  int number = 0;           // from 1
  absl::string_view whole;  // as in the file
  absl::string_view words;  // trimmed; part of `whole`
};

// Part of a line of a plan file, and where it stands, both from 1. Line 0: nowhere.
struct PlanWord {
  int line = 0;
  int column = 0;
  absl::string_view text;
};

// "key: value", both trimmed.
struct PlanPair {
  PlanWord key;
  PlanWord value;
};

// `part` of `line.whole` with its place.
PlanWord WordAt(const PlanLine& line, absl::string_view part);
// `part` of `word.text` with its place.
PlanWord WordIn(const PlanWord& word, absl::string_view part);

// What stands between separators, trimmed; of an empty text nothing.
std::vector<PlanWord> SplitWord(const PlanWord& word, char separator);
// The first word and the rest, which may be empty.
std::pair<PlanWord, PlanWord> CutFirstWord(const PlanWord& word);

// InvalidArgument "line:column: problem".
absl::Status ErrorAt(const PlanWord& word, absl::string_view problem);

// In quotes, cut where it is long, and nothing that a terminal would obey.
std::string QuotedWord(absl::string_view text);

// Whole numbers from `least` up. Errors: as of ErrorAt.
absl::StatusOr<int64_t> ParseLargeNumber(const PlanWord& word, int64_t least);
absl::StatusOr<int> ParseSmallNumber(const PlanWord& word, int least);

// Numbers of `what` (layers, devices), [begin, end): "3" alone, "3 to 7" of several.
struct PlanRange {
  int begin = 0;
  int end = 0;
};
absl::StatusOr<PlanRange> ParseRange(const PlanWord& word, absl::string_view what);
// "layer 3", "layers 3 to 7". Requires: one at least.
std::string RangeText(absl::string_view what, const PlanRange& range);

// What was parsed from `word`. Errors: as of ErrorAt, with the message of `parsed`.
template <typename Value>
absl::Status Take(absl::StatusOr<Value> parsed, const PlanWord& word, Value& into) {
  if (!parsed.ok()) return ErrorAt(word, parsed.status().message());
  into = *std::move(parsed);
  return absl::OkStatus();
}

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_PLAN_WORDS_H_
