#include "planner/strategies/draft_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/strategies/make_groups.h"

namespace siphon {
namespace {

// Writes the groups of one stage.
class StagePlanWriter {
 public:
  StagePlanWriter(const PlanningProblem& problem, const StageRange& stage, const StageDraft& draft,
                  const std::vector<LenderWeight>& lenders)
      : problem_(problem), stage_(stage), draft_(draft), lenders_(lenders) {}

  StagePlan Write() {
    plan_.update = draft_.update;
    AddRuns(GroupKind::kActivations, draft_.activations);
    Add(GroupKind::kParameters, stage_, Placement::kKeep);
    Add(GroupKind::kGradients, stage_, Placement::kKeep);
    if (draft_.update == UpdatePlace::kHost) {
      Add(GroupKind::kOptimizerState, stage_, Placement::kKeep);
    } else {
      AddRuns(GroupKind::kOptimizerState, draft_.optimizer_state);
    }
    AddRuns(GroupKind::kWeightVersions, draft_.weight_versions);
    return std::move(plan_);
  }

 private:
  Placement PlacementOf(Placement wanted) const {
    return wanted == Placement::kPeerSwap && lenders_.empty() ? Placement::kKeep : wanted;
  }

  int MostLayers(Placement placement) const {
    const int run = placement == Placement::kKeep        ? 0
                    : placement == Placement::kRecompute ? draft_.recompute_run
                                                         : draft_.swap_run;
    return run > 0 ? run : stage_.end - stage_.begin;
  }

  void AddRuns(GroupKind kind, const std::vector<Placement>& placements) {
    const auto layers = static_cast<int>(placements.size());
    for (int begin = 0; begin < layers;) {
      const Placement placement = PlacementOf(placements[begin]);
      const int limit = std::min(layers, begin + MostLayers(placement));
      int end = begin + 1;
      while (end < limit && PlacementOf(placements[end]) == placement) ++end;
      Add(kind, {stage_.begin + begin, stage_.begin + end}, placement);
      begin = end;
    }
  }

  void Add(GroupKind kind, const StageRange& layers, Placement placement) {
    PlannedGroup planned{.group = placement == Placement::kRecompute
                                      ? DroppedGroupOf(problem_.profile, stage_, layers)
                                      : GroupOf(problem_.profile, stage_, kind, layers),
                         .choice = {.placement = placement}};
    if (planned.group.bytes == Bytes(0)) return;
    if (placement == Placement::kPeerSwap) {
      planned.choice.stripes = CutStripes(planned.group.bytes, lenders_, problem_.granule);
    }
    plan_.groups.push_back(std::move(planned));
  }

  const PlanningProblem& problem_;
  const StageRange stage_;
  const StageDraft& draft_;
  const std::vector<LenderWeight>& lenders_;
  StagePlan plan_;
};

}  // namespace

DraftPlan KeepingDraft(const PlanningProblem& problem) {
  const int workers = WorkerCount(problem.schedule);
  DraftPlan draft{
      .mapping = problem.mapping.value_or(IdentityMapping(workers * problem.schedule.replicas))};
  const std::vector<int> versions = PeakWeightVersions(problem.schedule);
  for (const StageRange& stage : problem.partition.stages) {
    const auto layers = static_cast<size_t>(stage.end - stage.begin);
    const bool stashes = versions[draft.stages.size()] > 1;
    draft.stages.push_back(
        {.activations = std::vector<Placement>(layers, Placement::kKeep),
         .optimizer_state = std::vector<Placement>(layers, Placement::kKeep),
         .weight_versions = std::vector<Placement>(stashes ? layers : 0, Placement::kKeep)});
  }
  draft.lenders.resize(static_cast<size_t>(workers));
  return draft;
}

MemoryPlan PlanOf(const PlanningProblem& problem, const DraftPlan& draft) {
  MemoryPlan plan;
  for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
    const int worker = problem.schedule.worker_of_stage[stage].value;
    plan.stages.push_back(StagePlanWriter(problem, problem.partition.stages[stage],
                                          draft.stages[stage], draft.lenders[worker])
                              .Write());
  }
  return plan;
}

LowerMemoryOptions LoweringOf(const DraftPlan& draft) {
  LowerMemoryOptions options;
  for (const StageDraft& stage : draft.stages) {
    options.timing.push_back(stage.timing);
    options.direct.push_back(stage.direct);
  }
  return options;
}

void Apply(const DraftMove& move, DraftPlan& draft) {
  StageDraft& stage = draft.stages[move.stage];
  switch (move.what) {
    case DraftMove::What::kActivations:
      stage.activations[move.layer] = move.to;
      break;
    case DraftMove::What::kOptimizerState:
      stage.optimizer_state[move.layer] = move.to;
      break;
    case DraftMove::What::kWeightVersions:
      stage.weight_versions[move.layer] = move.to;
      break;
    case DraftMove::What::kUpdateOnHost:
      stage.update = UpdatePlace::kHost;
      break;
  }
}

DraftPlan Replace(DraftPlan draft, Placement from, Placement to) {
  const Placement state_to = to == Placement::kRecompute ? Placement::kHostSwap : to;
  for (StageDraft& stage : draft.stages) {
    std::replace(stage.activations.begin(), stage.activations.end(), from, to);
    std::replace(stage.optimizer_state.begin(), stage.optimizer_state.end(), from, state_to);
    std::replace(stage.weight_versions.begin(), stage.weight_versions.end(), from, state_to);
  }
  return draft;
}

bool Uses(const DraftPlan& draft, Placement placement) {
  const auto has = [placement](const std::vector<Placement>& placements) {
    return std::find(placements.begin(), placements.end(), placement) != placements.end();
  };
  return std::any_of(draft.stages.begin(), draft.stages.end(), [&](const StageDraft& stage) {
    return has(stage.activations) || has(stage.optimizer_state) || has(stage.weight_versions);
  });
}

}  // namespace siphon
