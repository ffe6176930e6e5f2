#include "planner/schedule.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool ReleasesActivation(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

using Cell = std::pair<StageId, MicrobatchId>;

constexpr absl::string_view kCompound = "OVERLAP_F_B";

// Cells of torch's compute_comms files that mean something under fully sharded data parallelism
// only: "1UNSHARD", "1RESHARD", "1REDUCE_GRAD".
bool IsFullyShardedOnly(absl::string_view cell) {
  while (!cell.empty() && absl::ascii_isdigit(cell.front())) cell.remove_prefix(1);
  return cell == "UNSHARD" || cell == "RESHARD" || cell == "REDUCE_GRAD";
}

// The members of one cell of text: one action, or the two of a compound cell.
absl::StatusOr<std::vector<Action>> ParseCell(absl::string_view cell) {
  if (!absl::ConsumePrefix(&cell, "(")) {
    SIPHON_ASSIGN_OR_RETURN(const Action action, ParseAction(cell));
    return std::vector<Action>{action};
  }
  const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(cell, ')');
  if (halves.second != kCompound) {
    return absl::InvalidArgumentError(
        absl::StrCat("cell '(", cell, "': a compound cell reads (0F7;7B3)", kCompound));
  }
  std::vector<Action> members;
  for (const absl::string_view text : absl::StrSplit(halves.first, ';')) {
    SIPHON_ASSIGN_OR_RETURN(const Action action, ParseAction(text));
    members.push_back(action);
  }
  if (members.size() != 2 || !IsCompute(members[0].kind) || !IsCompute(members[1].kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cell '(", cell, "': a compound cell has two compute actions"));
  }
  members[0].pairing = Pairing::kWithNext;
  return members;
}

// Takes the lines of a schedule's text one after the other.
class ScheduleReader {
 public:
  // Errors: InvalidArgument without the place.
  absl::Status AddCell(absl::string_view text) {
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Action> members, ParseCell(text));
    const WorkerId worker(static_cast<int>(schedule_.programs.size()) - 1);
    for (const Action& action : members) {
      const auto [known, is_new] = worker_of_.insert({action.stage, worker});
      if (!is_new && known->second != worker) {
        return absl::InvalidArgumentError(absl::StrCat(text, ": stage ", action.stage.value,
                                                       " stands in line ", known->second.value + 1,
                                                       " already; one worker holds a stage"));
      }
      largest_stage_ = std::max(largest_stage_, action.stage.value);
      if (HasMicrobatch(action)) {
        schedule_.microbatches = std::max(schedule_.microbatches, action.microbatch.value + 1);
      }
      schedule_.programs.back().push_back(action);
    }
    return absl::OkStatus();
  }

  void BeginLine() { schedule_.programs.emplace_back(); }

  absl::StatusOr<Schedule> Finish() && {
    // Told before a table of that size is made.
    if (worker_of_.size() <= static_cast<size_t>(largest_stage_)) {
      int missing = 0;
      while (worker_of_.contains(StageId(missing))) ++missing;
      return absl::InvalidArgumentError(absl::StrCat("stage ", missing, " is missing: stages 0 to ",
                                                     largest_stage_, " need a worker each"));
    }
    for (int stage = 0; stage <= largest_stage_; ++stage) {
      schedule_.worker_of_stage.push_back(worker_of_.at(StageId(stage)));
    }
    return std::move(schedule_);
  }

 private:
  Schedule schedule_;
  absl::flat_hash_map<StageId, WorkerId> worker_of_;
  int largest_stage_ = 0;
};

int PeakOf(const std::vector<Action>& program) {
  absl::flat_hash_set<Cell> released_later;
  for (const Action& action : program) {
    if (ReleasesActivation(action.kind)) released_later.insert({action.stage, action.microbatch});
  }
  int live = 0;
  int peak = 0;
  bool overlaps = false;  // the action before runs at the same time
  int ends_with_cell = 0;
  for (const Action& action : program) {
    if (!overlaps) {
      live -= ends_with_cell;
      ends_with_cell = 0;
    }
    overlaps = action.pairing == Pairing::kWithNext;
    if (action.kind == ActionKind::kForward) {
      ++live;
      peak = std::max(peak, live);
      // Without a backward nothing is kept: live during the forward only.
      if (!released_later.contains({action.stage, action.microbatch})) --live;
    } else if (ReleasesActivation(action.kind)) {
      ++ends_with_cell;  // both ends of a life are included
    }
  }
  return peak;
}

// The actions of a stage, in order.
std::vector<Action> ActionsOf(const Schedule& schedule, StageId stage) {
  std::vector<Action> actions;
  for (const Action& action : schedule.programs[schedule.worker_of_stage[stage.value].value]) {
    if (action.stage == stage) actions.push_back(action);
  }
  return actions;
}

// The weight version of each microbatch under WeightRule::kOneGroupBehind.
absl::flat_hash_map<MicrobatchId, int> VersionsOneGroupBehind(const std::vector<Action>& actions) {
  std::vector<int> last_of_group;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kUpdate) last_of_group.push_back(action.microbatch.value);
  }
  absl::flat_hash_map<MicrobatchId, int> versions;
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kForward) continue;
    const auto group =
        std::lower_bound(last_of_group.begin(), last_of_group.end(), action.microbatch.value) -
        last_of_group.begin();
    versions[action.microbatch] = std::max(static_cast<int>(group) - 1, 0);
  }
  return versions;
}

int PeakVersionsOf(const Schedule& schedule, StageId stage) {
  const std::vector<Action> actions = ActionsOf(schedule, stage);
  const bool behind = schedule.weight_rule == WeightRule::kOneGroupBehind;
  absl::flat_hash_map<MicrobatchId, int> version_of;  // of microbatches that will come back to it
  if (behind) version_of = VersionsOneGroupBehind(actions);
  int newest = 0;
  std::map<int, int>
      uses;  // version -> microbatches that will come back to it; the newest: one more
  ++uses[newest];
  for (const auto& [microbatch, version] : version_of) ++uses[version];
  const auto give_back = [&uses](int version) {
    if (--uses[version] == 0) uses.erase(version);
  };
  size_t peak = 1;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kForward && !behind) {
      version_of[action.microbatch] = newest;
      ++uses[newest];
    } else if (ReleasesActivation(action.kind)) {
      const auto found = version_of.find(action.microbatch);
      if (found == version_of.end()) continue;
      give_back(found->second);
      version_of.erase(found);
    } else if (action.kind == ActionKind::kUpdate) {
      ++uses[newest + 1];
      give_back(newest++);
    }
    // Those that are not made yet stand behind the newest.
    const auto held = std::distance(uses.begin(), uses.upper_bound(newest));
    peak = std::max(peak, static_cast<size_t>(held));
  }
  return static_cast<int>(peak);
}

// `cells_of` gives the cells of a line, as parts of it.
absl::StatusOr<Schedule> ReadLines(
    absl::string_view text,
    absl::FunctionRef<std::vector<absl::string_view>(absl::string_view line)> cells_of) {
  absl::ConsumeSuffix(&text, "\n");
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError("the schedule has no actions");
  }
  ScheduleReader reader;
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    reader.BeginLine();
    for (const absl::string_view cell : cells_of(line)) {
      const int column = static_cast<int>(cell.data() - line.data()) + 1;
      SIPHON_RETURN_IF_ERROR(
          Annotate(reader.AddCell(cell), absl::StrCat(line_number, ":", column)));
    }
  }
  return std::move(reader).Finish();
}

}  // namespace

int WorkerCount(const Schedule& schedule) { return static_cast<int>(schedule.programs.size()); }

int StageCount(const Schedule& schedule) {
  return static_cast<int>(schedule.worker_of_stage.size());
}

std::vector<StageId> StagesOf(const Schedule& schedule, WorkerId worker) {
  std::vector<StageId> stages;
  for (int stage = 0; stage < StageCount(schedule); ++stage) {
    if (schedule.worker_of_stage[stage] == worker) stages.push_back(StageId(stage));
  }
  return stages;
}

bool SplitsBackward(const Schedule& schedule) {
  const auto is_input = [](const Action& action) {
    return action.kind == ActionKind::kBackwardInput;
  };
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const auto& program) {
    return std::any_of(program.begin(), program.end(), is_input);
  });
}

std::vector<std::string> CellTexts(const std::vector<Action>& program) {
  std::vector<std::string> cells;
  for (size_t place = 0; place < program.size(); ++place) {
    if (program[place].pairing == Pairing::kWithNext && place + 1 < program.size()) {
      cells.push_back(absl::StrCat("(", ToString(program[place]), ";", ToString(program[place + 1]),
                                   ")", kCompound));
      ++place;
    } else {
      cells.push_back(ToString(program[place]));
    }
  }
  return cells;
}

std::string ToString(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& program : schedule.programs) {
    absl::StrAppend(&text, absl::StrJoin(CellTexts(program), " "), "\n");
  }
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view text) {
  return ReadLines(text, [](absl::string_view line) {
    return std::vector<absl::string_view>(
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty()));
  });
}

absl::StatusOr<Schedule> ParseScheduleCsv(absl::string_view text) {
  return ReadLines(text, [](absl::string_view line) {
    std::vector<absl::string_view> cells;
    for (const absl::string_view untrimmed : absl::StrSplit(line, ',')) {
      const absl::string_view cell = absl::StripAsciiWhitespace(untrimmed);
      if (!cell.empty() && !IsFullyShardedOnly(cell)) cells.push_back(cell);
    }
    return cells;
  });
}

std::string ToCsv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& program : schedule.programs) {
    absl::StrAppend(&text, absl::StrJoin(CellTexts(program), ","), "\n");
  }
  return text;
}

std::vector<int> PeakLiveActivations(const Schedule& schedule) {
  std::vector<int> peaks;
  for (const std::vector<Action>& program : schedule.programs) peaks.push_back(PeakOf(program));
  return peaks;
}

std::vector<int> PeakWeightVersions(const Schedule& schedule) {
  std::vector<int> peaks;
  for (int stage = 0; stage < StageCount(schedule); ++stage) {
    peaks.push_back(PeakVersionsOf(schedule, StageId(stage)));
  }
  return peaks;
}

std::vector<MicrobatchId> AccumulationOrder(const Schedule& schedule, StageId stage) {
  std::vector<MicrobatchId> order;
  for (const Action& action : schedule.programs[schedule.worker_of_stage[stage.value].value]) {
    if (action.stage == stage && ReleasesActivation(action.kind)) {
      order.push_back(action.microbatch);
    }
  }
  return order;
}

}  // namespace siphon
