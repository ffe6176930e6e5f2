#include "planner/schedule.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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

int PeakOf(const std::vector<Action>& program) {
  absl::flat_hash_set<Cell> released_later;
  for (const Action& action : program) {
    if (ReleasesActivation(action.kind)) released_later.insert({action.stage, action.microbatch});
  }
  int live = 0;
  int peak = 0;
  for (const Action& action : program) {
    if (action.kind == ActionKind::kForward) {
      // Without a backward nothing is kept: live during the forward only.
      const bool kept = released_later.contains({action.stage, action.microbatch});
      peak = std::max(peak, live + 1);
      if (kept) ++live;
    } else if (ReleasesActivation(action.kind)) {
      --live;
    }
  }
  return peak;
}

}  // namespace

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

std::string ToString(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& program : schedule.programs) {
    const auto append_action = [](std::string* out, const Action& action) {
      out->append(ToString(action));
    };
    absl::StrAppend(&text, absl::StrJoin(program, " ", append_action), "\n");
  }
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view text) {
  Schedule schedule;
  absl::flat_hash_map<StageId, WorkerId> worker_of;
  absl::ConsumeSuffix(&text, "\n");
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError("the schedule has no actions");
  }
  int largest_stage = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const WorkerId worker(static_cast<int>(schedule.programs.size()));
    std::vector<Action>& program = schedule.programs.emplace_back();
    for (const absl::string_view cell :
         absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
      const absl::StatusOr<Action> action = ParseAction(cell);
      if (!action.ok()) {
        return Annotate(action.status(),
                        absl::StrCat("line ", worker.value + 1, " action ", program.size() + 1));
      }
      const auto [known, is_new] = worker_of.insert({action->stage, worker});
      if (!is_new && known->second != worker) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", worker.value + 1, " action ", program.size() + 1, ": ", cell,
                         ": stage ", action->stage.value, " stands in line ",
                         known->second.value + 1, " already; one worker holds a stage"));
      }
      largest_stage = std::max(largest_stage, action->stage.value);
      if (HasMicrobatch(action->kind)) {
        schedule.microbatches = std::max(schedule.microbatches, action->microbatch.value + 1);
      }
      program.push_back(*action);
    }
  }
  for (int stage = 0; stage <= largest_stage; ++stage) {
    const auto found = worker_of.find(StageId(stage));
    if (found == worker_of.end()) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " is missing: stages 0 to ",
                                                     largest_stage, " need a worker each"));
    }
    schedule.worker_of_stage.push_back(found->second);
  }
  return schedule;
}

std::vector<int> PeakLiveActivations(const Schedule& schedule) {
  std::vector<int> peaks;
  for (const std::vector<Action>& program : schedule.programs) peaks.push_back(PeakOf(program));
  return peaks;
}

}  // namespace siphon
