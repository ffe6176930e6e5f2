#include "planner/marked_grid.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// What fits on a screen: neighbours on both sides of the bad cell, and of its line.
constexpr int kCellsAround = 12;
constexpr int kLinesAround = 8;

void AppendLine(const Schedule& schedule, int worker, ActionPosition bad, std::string& grid) {
  const std::vector<Action>& program = schedule.programs[worker];
  const int size = static_cast<int>(program.size());
  const int first = std::clamp(bad.index - kCellsAround, 0, size);
  const int last = std::clamp(bad.index + kCellsAround + 1, 0, size);
  absl::StrAppend(&grid, "worker ", worker, ":");
  if (first > 0) absl::StrAppend(&grid, " ...");
  for (int index = first; index < last; ++index) {
    absl::StrAppend(&grid, " ", ToString(program[index]));
    if (bad == ActionPosition{worker, index}) absl::StrAppend(&grid, " <-- here");
  }
  if (last < size) absl::StrAppend(&grid, " ...");
  if (bad.worker == worker && bad.index >= size) absl::StrAppend(&grid, " <-- here");
}

}  // namespace

std::string MarkedGrid(const Schedule& schedule, ActionPosition bad) {
  const int workers = static_cast<int>(schedule.programs.size());
  const int first = std::max(bad.worker - kLinesAround, 0);
  const int last = std::min(bad.worker + kLinesAround + 1, workers);
  std::string grid;
  if (first > 0) absl::StrAppend(&grid, "...\n");
  for (int worker = first; worker < last; ++worker) {
    if (worker > first) absl::StrAppend(&grid, "\n");
    AppendLine(schedule, worker, bad, grid);
  }
  if (last < workers) absl::StrAppend(&grid, "\n...");
  return grid;
}

absl::Status ScheduleError(const Schedule& schedule, ActionPosition bad,
                           absl::string_view sentence) {
  return absl::FailedPreconditionError(absl::StrCat(sentence, "\n", MarkedGrid(schedule, bad)));
}

std::string SentenceOf(const absl::Status& status) {
  return std::string(status.message().substr(0, status.message().find('\n')));
}

}  // namespace siphon
