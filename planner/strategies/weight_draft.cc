#include "planner/strategies/weight_draft.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"
#include "planner/strategies/lower_memory_plan.h"
#include "planner/strategies/make_groups.h"

namespace siphon {
namespace {

bool IsAway(const LayerWeights& layer, GroupKind kind) {
  switch (kind) {
    case GroupKind::kParameters:
      return layer.parameters;
    case GroupKind::kGradients:
      return layer.gradients;
    case GroupKind::kOptimizerState:
      return layer.optimizer_state;
    case GroupKind::kActivations:
    case GroupKind::kWeightVersions:
      break;
  }
  return false;
}

StagePlan StagePlanOf(const PlanningProblem& problem, const StageRange& range,
                      const StageWeights& weights) {
  StagePlan plan{.update = weights.update};
  const bool on_host = weights.update == UpdatePlace::kHost;
  const auto add = [&](GroupKind kind, int begin, int end, bool away) {
    const StageRange layers{range.begin + begin, range.begin + end};
    const Placement place = away ? Placement::kHostSwap : Placement::kKeep;
    plan.groups.push_back(
        {.group = GroupOf(problem.profile, range, kind, layers), .choice = {.placement = place}});
  };
  const auto layers = static_cast<int>(weights.layers.size());
  add(GroupKind::kActivations, 0, layers, false);
  for (const GroupKind kind :
       {GroupKind::kParameters, GroupKind::kGradients, GroupKind::kOptimizerState}) {
    const bool state = kind == GroupKind::kOptimizerState;
    // Layers whose group of that kind is theirs alone.
    const auto alone = [&](int layer) {
      const LayerWeights& away = weights.layers[layer];
      if (!state) return IsAway(away, kind);
      return !on_host && (away.parameters || away.gradients || away.optimizer_state);
    };
    for (int begin = 0; begin < layers;) {
      int end = begin + 1;
      while (!alone(begin) && end < layers && !alone(end)) ++end;
      const bool away = IsAway(weights.layers[begin], kind) && alone(begin);
      add(kind, begin, end, away);
      const bool empty = plan.groups.back().group.bytes == Bytes(0);
      // Nothing to move; but a step of its own needs a group.
      if (empty && !(state && alone(begin))) plan.groups.pop_back();
      if (empty && state && alone(begin)) plan.groups.back().choice = {};
      begin = end;
    }
  }
  if (plan.groups.front().group.bytes == Bytes(0)) plan.groups.erase(plan.groups.begin());
  return plan;
}

// Bisection of all workers at once: one's peak hangs on its own moves alone.
class WeightFitter {
 public:
  WeightFitter(const PlanningProblem& problem, const std::vector<std::vector<WeightMove>>& moves)
      : problem_(problem), moves_(moves) {}

  absl::StatusOr<SimulatedWeights> Fit() {
    const size_t workers = moves_.size();
    std::vector<int> low(workers, -1);  // too few
    std::vector<int> high(workers, 0);  // enough
    SIPHON_ASSIGN_OR_RETURN(SimulatedWeights best, Run(high));
    if (Fits(best)) return best;
    for (size_t worker = 0; worker < workers; ++worker) {
      if (best.excess[worker] == Bytes(0)) continue;
      low[worker] = 0;
      high[worker] = static_cast<int>(moves_[worker].size());
    }
    SIPHON_ASSIGN_OR_RETURN(best, Run(high));
    while (Fits(best)) {
      std::vector<int> middle = high;
      for (size_t worker = 0; worker < workers; ++worker) {
        if (high[worker] - low[worker] > 1) middle[worker] = (low[worker] + high[worker]) / 2;
      }
      if (middle == high) break;
      SIPHON_ASSIGN_OR_RETURN(SimulatedWeights tried, Run(middle));
      for (size_t worker = 0; worker < workers; ++worker) {
        if (middle[worker] == high[worker]) continue;
        (tried.excess[worker] == Bytes(0) ? high : low)[worker] = middle[worker];
      }
      if (Fits(tried)) best = std::move(tried);
    }
    if (!Fits(best)) return best;
    // Each worker's least number, found in different company.
    SIPHON_ASSIGN_OR_RETURN(SimulatedWeights tried, Run(high));
    return Fits(tried) ? std::move(tried) : std::move(best);
  }

 private:
  absl::StatusOr<SimulatedWeights> Run(const std::vector<int>& taken) {
    WeightDraft draft = KeepingWeights(problem_);
    for (size_t worker = 0; worker < moves_.size(); ++worker) {
      for (int index = 0; index < taken[worker]; ++index) {
        const WeightMove& move = moves_[worker][index];
        LayerWeights& layer = draft[move.stage].layers[move.layer];
        layer.parameters |= move.kind == GroupKind::kParameters;
        layer.gradients |= move.kind == GroupKind::kGradients;
        layer.optimizer_state |= move.kind == GroupKind::kOptimizerState;
      }
    }
    return SimulateWeights(problem_, std::move(draft));
  }

  const PlanningProblem& problem_;
  const std::vector<std::vector<WeightMove>>& moves_;
};

DeviceMapping MappingOf(const PlanningProblem& problem) {
  return problem.mapping.value_or(
      IdentityMapping(WorkerCount(problem.schedule) * problem.schedule.replicas));
}

}  // namespace

WeightDraft KeepingWeights(const PlanningProblem& problem) {
  WeightDraft draft;
  for (const StageRange& stage : problem.partition.stages) {
    draft.push_back({.layers = std::vector<LayerWeights>(stage.end - stage.begin)});
  }
  return draft;
}

bool CanStream(const PlanningProblem& problem, StageId stage) {
  const int worker = problem.schedule.worker_of_stage[stage.value].value;
  const std::vector<Action>& program = problem.schedule.programs[worker];
  return std::none_of(program.begin(), program.end(), [stage](const Action& action) {
    return action.kind == ActionKind::kUpdate && action.stage == stage;
  });
}

MemoryPlan PlanOf(const PlanningProblem& problem, const WeightDraft& draft) {
  MemoryPlan plan;
  for (size_t stage = 0; stage < draft.size(); ++stage) {
    plan.stages.push_back(StagePlanOf(problem, problem.partition.stages[stage], draft[stage]));
  }
  return plan;
}

bool Fits(const SimulatedWeights& simulated) {
  return std::all_of(simulated.excess.begin(), simulated.excess.end(),
                     [](Bytes excess) { return excess == Bytes(0); });
}

absl::StatusOr<SimulatedWeights> SimulateWeights(const PlanningProblem& problem,
                                                 WeightDraft draft) {
  SimulatedWeights result{.draft = std::move(draft)};
  result.memory = PlanOf(problem, result.draft);
  LowerMemoryOptions options;
  options.weights.assign(result.draft.size(), WeightResidence::kLayerByLayer);
  // The next layer comes in for its step when the one before goes out: two at once there too.
  options.timing.assign(result.draft.size(), {.groups_ahead = 0});
  SIPHON_ASSIGN_OR_RETURN(result.schedule,
                          LowerMemoryPlan(problem.schedule, result.memory, options));
  SimulationInput input = SimulationOf(problem, MappingOf(problem), result.memory, result.schedule);
  input.capacity.clear();
  SIPHON_ASSIGN_OR_RETURN(result.simulated, Simulate(input));
  const auto workers = static_cast<size_t>(WorkerCount(problem.schedule));
  result.excess.resize(workers);
  for (size_t account = 0; account < result.simulated.peak.size(); ++account) {
    const size_t worker = account % workers;
    if (problem.capacity.empty() || problem.capacity[worker] == Bytes(0)) continue;
    const Bytes over = Total(result.simulated.peak[account]) - problem.capacity[worker];
    result.excess[worker] = std::max(result.excess[worker], over);
  }
  return result;
}

absl::StatusOr<SimulatedWeights> FitWeights(const PlanningProblem& problem,
                                            const std::vector<std::vector<WeightMove>>& moves) {
  return WeightFitter(problem, moves).Fit();
}

absl::StatusOr<PlannedStep> PlannedOf(const PlanningProblem& problem, SimulatedWeights simulated,
                                      absl::string_view strategy) {
  if (!Fits(simulated)) {
    const auto most = std::max_element(simulated.excess.begin(), simulated.excess.end());
    const auto worker = static_cast<int>(most - simulated.excess.begin());
    const Bytes capacity = problem.capacity[worker];
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", worker, " needs ", FormatBytes(capacity + *most), " at its fullest under ",
        strategy, ", its capacity is ", FormatBytes(capacity)));
  }
  DeviceMapping mapping = MappingOf(problem);
  SIPHON_ASSIGN_OR_RETURN(
      SimulatedStep step,
      Simulate(SimulationOf(problem, mapping, simulated.memory, simulated.schedule)));
  return PlannedStep{.memory = std::move(simulated.memory),
                     .mapping = std::move(mapping),
                     .schedule = std::move(simulated.schedule),
                     .simulated = std::move(step)};
}

}  // namespace siphon
