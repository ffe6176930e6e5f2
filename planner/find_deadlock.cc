#include "planner/find_deadlock.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct Progress {
  int next = 0;     // first action that is not done
  int checked = 0;  // actions of the current group before this one have met their partners
  int reached = 0;  // actions before this one are done, or posted as part of the current group
  // What it waits for, when it waits: the worker at `waits_on.worker` must reach beyond
  // `waits_on.index`.
  std::optional<ActionPosition> waits_on;
  std::vector<int> waiters;  // workers that wait for this one
};

class DryRun {
 public:
  DryRun(const Schedule& schedule, const ScheduleIndex& index, WaitsFor waits_for)
      : schedule_(schedule),
        index_(index),
        waits_for_(waits_for),
        workers_(schedule.programs.size()) {}

  absl::Status Run() {
    std::vector<int> ready;
    for (int worker = static_cast<int>(workers_.size()) - 1; worker >= 0; --worker) {
      ready.push_back(worker);
    }
    while (!ready.empty()) {
      const int worker = ready.back();
      ready.pop_back();
      Advance(worker, ready);
    }
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      if (workers_[worker].waits_on.has_value()) return CycleFrom(static_cast<int>(worker));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<Action>& ProgramOf(int worker) const { return schedule_.programs[worker]; }

  // One action, or all neighbouring communication actions together.
  int EndOfGroup(int worker, int begin) const {
    const std::vector<Action>& program = ProgramOf(worker);
    int end = begin + 1;
    if (!IsCommunication(program[begin].kind)) return end;
    while (end < static_cast<int>(program.size()) && IsCommunication(program[end].kind)) ++end;
    return end;
  }

  std::optional<ActionPosition> NeedOf(const Action& action) const {
    if (waits_for_ == WaitsFor::kCommunication) {
      if (!IsCommunication(action.kind)) return std::nullopt;
      return PositionOf(PartnerOf(action));
    }
    const int stage = action.stage.value;
    if (action.kind == ActionKind::kForward && stage > 0) {
      return PositionOf({StageId(stage - 1), ActionKind::kForward, action.microbatch});
    }
    const bool backward =
        action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
    if (backward && stage + 1 < StageCount(schedule_)) {
      const Action whole{StageId(stage + 1), ActionKind::kBackward, action.microbatch};
      const Action split{StageId(stage + 1), ActionKind::kBackwardInput, action.microbatch};
      return PositionOf(index_.Has(whole) ? whole : split);
    }
    return std::nullopt;
  }

  ActionPosition PositionOf(const Action& action) const {
    return {schedule_.worker_of_stage[action.stage.value].value, index_.Find(action)};
  }

  void Advance(int worker, std::vector<int>& ready) {
    Progress& me = workers_[worker];
    me.waits_on.reset();
    while (me.next < static_cast<int>(ProgramOf(worker).size())) {
      const int end = EndOfGroup(worker, me.next);
      if (IsCommunication(ProgramOf(worker)[me.next].kind)) me.reached = std::max(me.reached, end);
      for (me.checked = std::max(me.checked, me.next); me.checked < end; ++me.checked) {
        const std::optional<ActionPosition> need = NeedOf(ProgramOf(worker)[me.checked]);
        if (!need.has_value() || workers_[need->worker].reached > need->index) continue;
        me.waits_on = need;
        workers_[need->worker].waiters.push_back(worker);
        Wake(me, ready);
        return;
      }
      me.next = end;
      me.reached = std::max(me.reached, end);
    }
    Wake(me, ready);
  }

  // Hands on to those whose wait `me` has ended.
  void Wake(Progress& me, std::vector<int>& ready) {
    const auto still_waits = [&](int waiter) {
      return workers_[waiter].waits_on->index >= me.reached;
    };
    const auto woken = std::partition(me.waiters.begin(), me.waiters.end(), still_waits);
    ready.insert(ready.end(), woken, me.waiters.end());
    me.waiters.erase(woken, me.waiters.end());
  }

  // A worker that is done keeps nobody waiting, so following the waits must come back to a worker
  // seen before.
  absl::Status CycleFrom(int worker) const {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), worker) == path.end()) {
      path.push_back(worker);
      SIPHON_CHECK(workers_[worker].waits_on.has_value(),
                   "a worker that is done keeps nobody waiting");
      worker = workers_[worker].waits_on->worker;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), worker));
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());

    std::string sentence = "deadlock: ";
    constexpr size_t kMostTold = 6;
    for (size_t place = 0; place < std::min(path.size(), kMostTold); ++place) {
      const Progress& waiter = workers_[path[place]];
      if (place == 0)
        absl::StrAppend(&sentence, "worker ", path[place], " waits in ");
      else
        absl::StrAppend(&sentence, ", which waits in ");
      const ActionPosition need = *waiter.waits_on;
      absl::StrAppend(&sentence, ToString(ProgramOf(path[place])[waiter.checked]), " for ",
                      ToString(ProgramOf(need.worker)[need.index]), " of worker ", need.worker);
    }
    if (path.size() > kMostTold) {
      absl::StrAppend(&sentence, ", and so on through ", path.size(), " workers");
    }
    return ScheduleError(schedule_, {path.front(), workers_[path.front()].checked}, sentence);
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  const WaitsFor waits_for_;
  std::vector<Progress> workers_;
};

}  // namespace

Action PartnerOf(const Action& communication) {
  Action partner = communication;
  switch (communication.kind) {
    case ActionKind::kSendForward:
      partner.kind = ActionKind::kReceiveForward;
      ++partner.stage.value;
      break;
    case ActionKind::kReceiveForward:
      partner.kind = ActionKind::kSendForward;
      --partner.stage.value;
      break;
    case ActionKind::kSendBackward:
      partner.kind = ActionKind::kReceiveBackward;
      --partner.stage.value;
      break;
    case ActionKind::kReceiveBackward:
      partner.kind = ActionKind::kSendBackward;
      ++partner.stage.value;
      break;
    default:
      SIPHON_CHECK(false, "only communication actions have a partner");
  }
  return partner;
}

absl::Status FindDeadlock(const Schedule& schedule, const ScheduleIndex& index,
                          WaitsFor waits_for) {
  return DryRun(schedule, index, waits_for).Run();
}

}  // namespace siphon
