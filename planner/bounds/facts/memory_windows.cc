#include "planner/bounds/facts/memory_windows.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/bounds/facts/swap_limits.h"
#include "planner/cheapest_drops.h"
#include "planner/layer_cost.h"
#include "planner/stage_cost.h"

namespace siphon {
namespace {

constexpr int kNone = -1;

// Where one (stage, microbatch) of a worker stands in its program.
struct Life {
  int stage = 0;  // among the worker's
  int forward = kNone;
  int backward = kNone;  // B or I
  int end = kNone;       // B or W
};

struct Candidate {
  MemoryWindow window;
  int reach = 0;  // place of the last action that needs what is live at the window
  double weight = 0;
};

// What can be dropped of a layer for the least time, in parts that each cost more a byte than those
// before: any choice of its tensors takes at least as long as the cheapest parts of as many bytes.
std::vector<LayerKind> PartsOf(StageId stage, const LayerProfile& layer, Bytes stash) {
  const bool is_whole = FirstTensorsOf(layer).empty();
  std::vector<LayerKind> parts;
  DropStep before;
  for (const DropStep& step : CheapestDrops(layer, stash)) {
    parts.push_back({.stage = stage,
                     .stash = step.bytes - before.bytes,
                     .recompute = step.recompute - before.recompute,
                     .is_whole = is_whole});
    before = step;
  }
  return parts;
}

std::vector<LayerKind> KindsOf(const std::vector<StageId>& stages, const PlanningProblem& problem,
                               const std::vector<std::vector<LayerCost>>& layers) {
  std::vector<LayerKind> kinds;
  for (const StageId stage : stages) {
    const int first = problem.partition.stages[stage.value].begin;
    for (size_t layer = 0; layer < layers[stage.value].size(); ++layer) {
      const LayerProfile& profile = problem.profile.layers[static_cast<size_t>(first) + layer];
      for (const LayerKind& part : PartsOf(stage, profile, layers[stage.value][layer].stash)) {
        const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const LayerKind& kind) {
          return kind.stage == stage && kind.stash == part.stash &&
                 kind.recompute == part.recompute && kind.is_whole == part.is_whole;
        });
        if (same != kinds.end()) {
          ++same->layers;
        } else {
          kinds.push_back(part);
        }
      }
    }
  }
  return kinds;
}

class WindowSearch {
 public:
  WindowSearch(const std::vector<Action>& program, const std::vector<StageId>& stages,
               const std::vector<StageCost>& costs,
               const std::vector<std::vector<LayerCost>>& layers, int microbatches, Bytes spare)
      : program_(program), stages_(stages), costs_(costs), layers_(layers), spare_(spare) {
    lives_.resize(stages.size() * static_cast<size_t>(microbatches));
    for (int place = 0; place < static_cast<int>(program.size()); ++place) Enter(place);
  }

  std::vector<MemoryWindow> Run() {
    FindCandidates();
    return too_full_ ? Choose() : std::vector<MemoryWindow>();
  }
  // Behind Run.
  Bytes fixed_excess() const { return fixed_excess_; }

 private:
  Life& LifeOf(const Action& action) {
    const auto stage = std::find(stages_.begin(), stages_.end(), action.stage) - stages_.begin();
    const size_t microbatches = lives_.size() / stages_.size();
    Life& life = lives_[static_cast<size_t>(stage) * microbatches + action.microbatch.value];
    life.stage = static_cast<int>(stage);
    return life;
  }

  void Enter(int place) {
    const Action& action = program_[place];
    switch (action.kind) {
      case ActionKind::kForward:
        LifeOf(action).forward = place;
        return;
      case ActionKind::kBackward:
        LifeOf(action).backward = LifeOf(action).end = place;
        return;
      case ActionKind::kBackwardInput: {
        Life& life = LifeOf(action);
        life.backward = place;
        life.end = std::max(life.end, place);
        return;
      }
      case ActionKind::kBackwardWeight:
        LifeOf(action).end = place;
        return;
      default:
        return;
    }
  }

  // Sweeps the program with what is live in each place.
  void FindCandidates() {
    MemoryWindow now{.waiting = std::vector<int>(stages_.size(), 0)};
    int reach = kNone;
    bool fuller = false;  // than at the backward before
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& action = program_[place];
      if (!IsCompute(action.kind)) continue;
      const Life& life = LifeOf(action);
      const StageCost& cost = costs_[action.stage.value];
      if (life.forward == kNone || life.backward == kNone) continue;  // no training
      if (action.kind == ActionKind::kForward) {
        fuller = true;
        ++now.waiting[life.stage];
        now.stash += cost.stash;
        now.last_backward = std::max(now.last_backward, life.backward);
        reach = std::max(reach, life.end);
      } else if (action.kind == ActionKind::kBackwardWeight) {
        now.queued -= cost.kept_for_weights;
      } else {
        if (std::exchange(fuller, false)) Consider(now, action, place, reach);
        --now.waiting[life.stage];
        now.stash -= cost.stash;
        if (life.end <= place) continue;
        now.queued += cost.kept_for_weights;
        fixed_excess_ = std::max(fixed_excess_, now.queued + WorkspaceAtEnd(action) - spare_);
      }
    }
  }

  // What the backward uses beside tensors while its last layer, the stage's first, takes time.
  Bytes WorkspaceAtEnd(const Action& backward) const {
    const std::vector<LayerCost>& layers = layers_[backward.stage.value];
    if (layers.empty()) return Bytes(0);
    const bool whole = backward.kind == ActionKind::kBackward;
    const Nanos time = whole ? WholeBackward(layers.front()) : layers.front().input_backward;
    if (time == Nanos(0)) return Bytes(0);
    const StageCost& cost = costs_[backward.stage.value];
    return PassWorkspace(cost, backward.kind, cost.kept_for_weights - cost.stash);
  }

  void Consider(MemoryWindow window, const Action& backward, int place, int reach) {
    window.place = place;
    window.excess = window.stash + window.queued - spare_;
    const StageCost& cost = costs_[backward.stage.value];
    const std::vector<LayerCost>& layers = layers_[backward.stage.value];
    window.stage = backward.stage;
    window.split = backward.kind == ActionKind::kBackwardInput;
    window.own_stash = cost.stash;
    if (!layers.empty()) window.own_last_layer = layers.back().stash;
    const bool takes_time =
        backward.kind == ActionKind::kBackward || cost.input_backward > Nanos(0);
    if (takes_time) window.excess += PassWorkspace(cost, backward.kind);
    const bool kept = LifeOf(backward).end > place;
    window.excess_at_end = window.stash - window.own_stash + window.queued +
                           (kept ? cost.kept_for_weights : Bytes(0)) + WorkspaceAtEnd(backward) -
                           spare_;
    too_full_ |= window.excess > Bytes(0) || window.excess_at_end > Bytes(0);
    const auto live = static_cast<double>((window.stash + window.queued).value);
    candidates_.push_back({.window = std::move(window), .reach = reach, .weight = live * live});
  }

  // Weighted interval scheduling: the best choice that ends with a candidate goes on from the best
  // one among those whose reach ends before it.
  std::vector<MemoryWindow> Choose() {
    std::vector<double> best(candidates_.size());
    std::vector<int> before(candidates_.size(), kNone);
    int last = kNone;
    for (size_t index = 0; index < candidates_.size(); ++index) {
      for (size_t other = 0; other < index; ++other) {
        if (candidates_[other].reach >= candidates_[index].window.place) break;
        if (best[other] > best[index]) {
          best[index] = best[other];
          before[index] = static_cast<int>(other);
        }
      }
      best[index] += candidates_[index].weight;
      if (last == kNone || best[index] > best[last]) last = static_cast<int>(index);
    }
    std::vector<MemoryWindow> chosen;
    for (; last != kNone; last = before[last]) chosen.push_back(candidates_[last].window);
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

  const std::vector<Action>& program_;
  const std::vector<StageId>& stages_;
  const std::vector<StageCost>& costs_;
  const std::vector<std::vector<LayerCost>>& layers_;
  const Bytes spare_;
  std::vector<Life> lives_;  // [stage of the worker, microbatch]
  bool too_full_ = false;
  Bytes fixed_excess_;
  std::vector<Candidate> candidates_;  // by place; their reach never decreases
};

void FindUses(const std::vector<Action>& program, WorkerMemory& worker) {
  bool parameters = false;  // of the cell
  bool gradients = false;
  int begin = 0;
  for (int place = 0; place < static_cast<int>(program.size()); ++place) {
    const ActionKind kind = program[place].kind;
    parameters |= IsCompute(kind);
    gradients |= kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
    if (program[place].pairing == Pairing::kWithNext) continue;
    if (parameters) worker.parameter_uses.push_back(begin);
    if (gradients) worker.gradient_uses.push_back(begin);
    parameters = gradients = false;
    begin = place + 1;
  }
}

}  // namespace

int PlaceOf(const WorkerMemory& memory, StageId stage) {
  const auto found = std::find(memory.stages.begin(), memory.stages.end(), stage);
  return static_cast<int>(found - memory.stages.begin());
}

std::vector<WorkerMemory> MemoryOfWorkers(const PlanningProblem& problem) {
  const std::vector<StageCost> costs = StageCosts(problem.profile, problem.partition);
  const auto layers = LayerCosts(problem.profile, problem.partition);
  std::vector<WorkerMemory> workers;
  for (int index = 0; index < WorkerCount(problem.schedule); ++index) {
    WorkerMemory& worker = workers.emplace_back();
    worker.stages = StagesOf(problem.schedule, WorkerId(index));
    worker.layers = KindsOf(worker.stages, problem, layers);
    for (const StageId stage : worker.stages) {
      worker.kept.push_back(costs[stage.value].kept_for_weights);
      worker.parameters += costs[stage.value].parameters;
      worker.gradients += costs[stage.value].gradients;
      worker.optimizer_state += costs[stage.value].optimizer_state;
    }
    if (worker.stages.size() == 1) FindUses(problem.schedule.programs[index], worker);
    worker.spare = kUnlimitedBytes;
    if (problem.capacity.empty() || problem.capacity[index] == Bytes(0)) continue;
    worker.spare =
        problem.capacity[index] - worker.parameters - worker.gradients - worker.optimizer_state;
    if (!problem.held.empty()) worker.spare -= Total(problem.held[index]);
    WindowSearch search(problem.schedule.programs[index], worker.stages, costs, layers,
                        problem.schedule.microbatches, worker.spare);
    worker.windows = search.Run();
    worker.fixed_excess = search.fixed_excess();
  }
  return workers;
}

}  // namespace siphon
