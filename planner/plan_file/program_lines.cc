#include "planner/plan_file/program_lines.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace siphon {

absl::Status ProgramLines::Add(const PlanLine& line, const PlanPair& pair) {
  const std::string expected = absl::StrCat("worker ", lines_.size());
  if (pair.key.text != expected) {
    return ErrorAt(pair.key,
                   absl::StrCat(QuotedWord(pair.key.text), " where the program of ", expected,
                                " belongs; write '", expected, ": ' and its actions"));
  }
  // Everything keeps its line and column, so that what ParseSchedule says of them is true.
  text_.append(static_cast<size_t>(line.number - (lines_.empty() ? 1 : lines_.back())), '\n');
  text_.append(static_cast<size_t>(pair.value.column) - 1, ' ');
  absl::StrAppend(&text_, pair.value.text);
  lines_.push_back(line.number);
  return absl::OkStatus();
}

// A program for each line of the file up to the section's end came back; only those of workers
// count.
absl::StatusOr<Schedule> ProgramLines::Parse(const PlanWord& header) const {
  if (lines_.empty()) {
    return ErrorAt(header, absl::StrCat("'", header.text,
                                        "' has no programs; write 'worker 0: ' and its "
                                        "actions"));
  }
  absl::StatusOr<Schedule> parsed = ParseSchedule(text_);
  if (!parsed.ok()) {
    const absl::string_view message = parsed.status().message();
    const bool has_place = !message.empty() && absl::ascii_isdigit(message[0]);
    return has_place ? parsed.status() : ErrorAt(header, message);
  }
  Schedule schedule{.microbatches = parsed->microbatches};
  for (const int line : lines_) {
    // ParseSchedule drops nothing but trailing lines without a cell.
    const auto index = static_cast<size_t>(line) - 1;
    schedule.programs.push_back(index < parsed->programs.size() ? std::move(parsed->programs[index])
                                                                : std::vector<Action>());
  }
  for (const WorkerId line : parsed->worker_of_stage) {
    const auto found = std::lower_bound(lines_.begin(), lines_.end(), line.value + 1);
    schedule.worker_of_stage.push_back(WorkerId(static_cast<int>(found - lines_.begin())));
  }
  return schedule;
}

}  // namespace siphon
