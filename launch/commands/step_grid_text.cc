#include "launch/commands/step_grid_text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/output/action_colors.h"

namespace siphon {
namespace {

constexpr size_t kStepsBetweenNumbers = 5;
constexpr char kIdle = '.';
constexpr char kJoined = '+';
constexpr char kUpdated = '^';

// What one cell of the picture says. The last of its letters is left for the sign behind it.
struct Label {
  int begin = 0;
  int end = 0;
  std::string text;
  char sign = ' ';
  int color = 0;  // of a terminal
  char fill = ' ';
};

bool IsUpdate(ActionKind kind) { return kind == ActionKind::kStep || kind == ActionKind::kUpdate; }

std::string NameOf(const Action& action, bool with_stage) {
  if (with_stage) return ToString(action);
  const absl::string_view kind = ActionKindName(action.kind);
  return HasMicrobatch(action) ? absl::StrCat(kind, action.microbatch.value) : std::string(kind);
}

// The labels of a worker's row. Cells that share their steps share a label.
std::vector<Label> LabelsOf(const std::vector<GridCell>& row, bool with_stage) {
  std::vector<Label> labels;
  for (size_t place = 0; place < row.size(); ++place) {
    const GridCell& cell = row[place];
    const ActionColor& color = ColorOf({.action = cell.action});
    const std::string name = NameOf(cell.action, with_stage);
    if (place > 0 && row[place - 1].begin == cell.begin) {
      absl::StrAppend(&labels.back().text, std::string(1, kJoined), name);
      labels.back().sign = ' ';
      continue;
    }
    labels.push_back({cell.begin, cell.end, name, ' ', color.terminal, color.letter});
    if (cell.action.pairing == Pairing::kWithNext) labels.back().sign = kJoined;
  }
  return labels;
}

// Updates take no step, so that they are signs behind the action before them.
void SignUpdates(const std::vector<Action>& program, const std::vector<GridCell>& row,
                 std::vector<Label>& labels) {
  size_t next = 0;
  for (const Action& action : program) {
    if (next < row.size() && row[next].action == action) {
      ++next;
    } else if (IsUpdate(action.kind) && next > 0 && next <= labels.size()) {
      labels[next - 1].sign = kUpdated;
    }
  }
}

// Letters [from, until) of a row, a step being `width` letters.
std::string Piece(const std::vector<Label>& labels, size_t width, size_t from, size_t until,
                  TextColors colors) {
  std::string text;
  size_t place = from;
  const auto idle_until = [&](size_t end) {
    for (; place < end; ++place) text += place % width == 0 ? kIdle : ' ';
  };
  for (const Label& label : labels) {
    const size_t begin = static_cast<size_t>(label.begin) * width;
    const size_t end = static_cast<size_t>(label.end) * width;
    if (end <= from) continue;
    if (begin >= until) break;
    idle_until(std::max(begin, from));
    std::string letters = label.text;
    letters.resize(end - begin - 1, end - begin > width ? label.fill : ' ');
    const std::string shown = letters.substr(place - begin, std::min(until, end - 1) - place);
    if (colors == TextColors::kTerminal && !shown.empty()) {
      absl::StrAppend(&text, "\x1b[48;5;", label.color, "m\x1b[38;5;16m", shown, "\x1b[0m");
    } else {
      text += shown;
    }
    if (end <= until) text += label.sign;
    place = std::min(end, until);
  }
  idle_until(until);
  return text;
}

// Step numbers above their steps.
std::string Scale(size_t first, size_t last, size_t width) {
  std::string text;
  for (size_t step = first; step < last; ++step) {
    if (step % kStepsBetweenNumbers != 0) continue;
    text.resize((step - first) * width, ' ');
    absl::StrAppend(&text, step);
  }
  return text;
}

// Names kinds and signs that occur, in the order of a picture's legend.
std::string Legend(const std::vector<std::vector<Label>>& rows, const StepGrid& grid) {
  std::vector<std::string> meanings;
  for (const ActionColor& color : ActionColors()) {
    for (const std::vector<GridCell>& row : grid.rows) {
      const auto found = std::find_if(row.begin(), row.end(), [&](const GridCell& cell) {
        return IsCompute(cell.action.kind) &&
               ColorOf({.action = cell.action}).css_class == color.css_class;
      });
      if (found == row.end()) continue;
      meanings.push_back(absl::StrCat(ActionKindName(found->action.kind), " ", color.meaning));
      break;
    }
  }
  const auto occurs = [&](char sign) {
    return std::any_of(rows.begin(), rows.end(), [sign](const std::vector<Label>& labels) {
      return std::any_of(labels.begin(), labels.end(),
                         [sign](const Label& label) { return label.sign == sign; });
    });
  };
  meanings.push_back(absl::StrCat(std::string(1, kIdle), " idle"));
  if (occurs(kJoined)) meanings.push_back("+ both may run at the same time");
  if (occurs(kUpdated)) meanings.push_back("^ an update of weights follows");
  return absl::StrJoin(meanings, "   ");
}

std::string WithoutBlanksAtTheEnd(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string StepGridText(const Schedule& schedule, const StepGrid& grid, int columns,
                         TextColors colors) {
  const bool with_stage = StageCount(schedule) != WorkerCount(schedule);
  std::vector<std::vector<Label>> rows;
  size_t width = 0;
  for (size_t worker = 0; worker < grid.rows.size(); ++worker) {
    rows.push_back(LabelsOf(grid.rows[worker], with_stage));
    SignUpdates(schedule.programs[worker], grid.rows[worker], rows.back());
    for (const Label& label : rows.back()) width = std::max(width, label.text.size() + 1);
  }
  const std::string last_name = absl::StrCat("worker ", static_cast<int>(rows.size()) - 1, " ");
  const size_t room = static_cast<size_t>(std::max(columns, 1));
  const size_t steps = static_cast<size_t>(grid.steps);
  const size_t steps_a_block =
      room > last_name.size() + width ? (room - last_name.size()) / width : 1;
  std::string text;
  for (size_t first = 0; first < steps; first += steps_a_block) {
    const size_t last = std::min(first + steps_a_block, steps);
    absl::StrAppend(
        &text, first > 0 ? "\n" : "",
        WithoutBlanksAtTheEnd(std::string(last_name.size(), ' ') + Scale(first, last, width)),
        "\n");
    for (size_t worker = 0; worker < rows.size(); ++worker) {
      std::string name = absl::StrCat("worker ", worker);
      name.resize(last_name.size(), ' ');
      const std::string line =
          name + Piece(rows[worker], width, first * width, last * width, colors);
      absl::StrAppend(&text, WithoutBlanksAtTheEnd(line), "\n");
    }
  }
  return absl::StrCat(text, "\n", Legend(rows, grid), "\n");
}

}  // namespace siphon
