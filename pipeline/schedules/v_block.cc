#include "pipeline/schedules/v_block.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kInterval = 6;  // steps from one microbatch to the next: F, I and W of two stages
constexpr int kPasses = 4;

// Step of each pass of the first microbatch. [pass][worker]
std::array<std::vector<int>, kPasses> PassSteps(int workers, const VBlockDelays& delays) {
  std::array<std::vector<int>, kPasses> steps;
  int now = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    if (pass == 2) now += delays.turn;
    const bool down = pass % 2 == 0;
    steps[pass].resize(workers);
    for (int i = 0; i < workers; ++i) {
      const int worker = down ? i : workers - 1 - i;
      steps[pass][worker] = now;
      const int link = down ? worker : worker - 1;
      now += i + 1 < workers ? delays.link[pass][link % 2] : 1;
    }
  }
  return steps;
}

struct TimedAction {
  int step;
  Action action;  // of microbatch 0
};

// What one microbatch does on a worker.
std::vector<TimedAction> BlockOf(int worker, int workers,
                                 const std::array<std::vector<int>, kPasses>& steps) {
  const StageId down(worker);
  const StageId up(2 * workers - 1 - worker);
  std::vector<TimedAction> block = {{steps[0][worker], {down, ActionKind::kForward, {}}},
                                    {steps[1][worker], {up, ActionKind::kForward, {}}},
                                    {steps[2][worker], {up, ActionKind::kBackwardInput, {}}},
                                    {steps[3][worker], {down, ActionKind::kBackwardInput, {}}}};
  std::array<bool, kInterval> taken = {};
  for (const TimedAction& timed : block) {
    bool& step = taken[timed.step % kInterval];
    SIPHON_CHECK(!step, "the delays of a V block never give a worker two passes in one step");
    step = true;
  }
  for (const int pass : {2, 3}) {
    int step = steps[pass][worker] + 1;
    while (taken[step % kInterval]) ++step;
    taken[step % kInterval] = true;
    block.push_back({step, {pass == 2 ? up : down, ActionKind::kBackwardWeight, {}}});
  }
  return block;
}

// The block of a worker once for each microbatch, in the order of steps.
std::vector<Action> Repeat(const std::vector<TimedAction>& block, int microbatches) {
  std::vector<std::pair<int, Action>> timed;
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    for (const TimedAction& one : block) {
      Action action = one.action;
      action.microbatch = MicrobatchId(microbatch);
      timed.push_back({one.step + kInterval * microbatch, action});
    }
  }
  std::sort(timed.begin(), timed.end());  // no two at one step
  std::vector<Action> program;
  for (const auto& [step, action] : timed) program.push_back(action);
  return program;
}

// Runs the programs step by step, each action as early as it can, and writes down in which order
// workers take them: their own, but for the cool-down.
class CoolDownSorter {
 public:
  explicit CoolDownSorter(const Schedule& schedule)
      : schedule_(schedule),
        microbatches_(static_cast<size_t>(schedule.microbatches)),
        forward_end_(schedule.worker_of_stage.size() * microbatches_, kNever),
        input_end_(forward_end_) {
    for (const std::vector<Action>& program : schedule.programs) {
      const auto is_forward = [](const Action& action) {
        return action.kind == ActionKind::kForward;
      };
      const auto last = std::find_if(program.rbegin(), program.rend(), is_forward).base();
      workers_.push_back({.fixed = {program.begin(), last}});
      for (auto action = last; action != program.end(); ++action) {
        const bool weight = action->kind == ActionKind::kBackwardWeight;
        (weight ? workers_.back().weights : workers_.back().inputs).push_back(*action);
      }
    }
  }

  std::vector<std::vector<Action>> Run() {
    std::vector<std::vector<Action>> sorted(workers_.size());
    for (bool done = false; !done; ++now_) {
      done = true;
      for (size_t worker = 0; worker < workers_.size(); ++worker) {
        done = !TakeAction(workers_[worker], sorted[worker]) && done;
      }
    }
    return sorted;
  }

 private:
  static constexpr int kNever = 1 << 30;

  struct Worker {
    std::deque<Action> fixed;   // up to its last forward
    std::deque<Action> inputs;  // behind it
    std::deque<Action> weights;
  };

  int& End(std::vector<int>& ends, int stage, MicrobatchId microbatch) {
    return ends[static_cast<size_t>(stage) * microbatches_ + static_cast<size_t>(microbatch.value)];
  }

  bool IsReady(const Action& action) {
    const int stage = action.stage.value;
    switch (action.kind) {
      case ActionKind::kForward:
        return stage == 0 || End(forward_end_, stage - 1, action.microbatch) <= now_;
      case ActionKind::kBackwardInput:
        return End(forward_end_, stage, action.microbatch) <= now_ &&
               (stage + 1 == StageCount(schedule_) ||
                End(input_end_, stage + 1, action.microbatch) <= now_);
      default:
        return End(input_end_, stage, action.microbatch) <= now_;
    }
  }

  // Takes the first of `actions` that is ready, or tells that there is none.
  bool TakeAny(std::deque<Action>& actions, std::vector<Action>& sorted) {
    const auto found = std::find_if(actions.begin(), actions.end(),
                                    [this](const Action& action) { return IsReady(action); });
    if (found == actions.end()) return false;
    if (found->kind == ActionKind::kForward) {
      End(forward_end_, found->stage.value, found->microbatch) = now_ + 1;
    } else if (found->kind == ActionKind::kBackwardInput) {
      End(input_end_, found->stage.value, found->microbatch) = now_ + 1;
    }
    sorted.push_back(*found);
    actions.erase(found);
    return true;
  }

  // False when the worker has nothing left to do.
  bool TakeAction(Worker& worker, std::vector<Action>& sorted) {
    if (!worker.fixed.empty()) {
      if (IsReady(worker.fixed.front())) TakeAny(worker.fixed, sorted);
      return true;
    }
    return TakeAny(worker.inputs, sorted) || TakeAny(worker.weights, sorted) ||
           !worker.inputs.empty() || !worker.weights.empty();
  }

  const Schedule& schedule_;
  const size_t microbatches_;
  int now_ = 0;
  std::vector<int> forward_end_;  // [stage, microbatch]: step
  std::vector<int> input_end_;
  std::vector<Worker> workers_;
};

}  // namespace

void WriteVBlocks(Schedule& schedule, const VBlockDelays& delays) {
  const int workers = WorkerCount(schedule);
  const std::array<std::vector<int>, kPasses> steps = PassSteps(workers, delays);
  for (int worker = 0; worker < workers; ++worker) {
    schedule.programs[worker] = Repeat(BlockOf(worker, workers, steps), schedule.microbatches);
  }
  schedule.programs = CoolDownSorter(schedule).Run();
}

}  // namespace siphon
