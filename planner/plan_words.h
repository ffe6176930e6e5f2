#ifndef SIPHON_PLANNER_PLAN_WORDS_H_
#define SIPHON_PLANNER_PLAN_WORDS_H_

#include <cstdint>
#include <string>

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

// `part` of `line.whole` with its place.
PlanWord WordAt(const PlanLine& line, absl::string_view part);

// InvalidArgument "line:column: problem".
absl::Status ErrorAt(const PlanWord& word, absl::string_view problem);

// In quotes, cut where it is long, and nothing that a terminal would obey.
std::string QuotedWord(absl::string_view text);

// Whole numbers from `least` up. Errors: as of ErrorAt.
absl::StatusOr<int64_t> ParseLargeNumber(const PlanWord& word, int64_t least);
absl::StatusOr<int> ParseSmallNumber(const PlanWord& word, int least);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_WORDS_H_
