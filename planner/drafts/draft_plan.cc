#include "planner/drafts/draft_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/lowering/make_groups.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

std::vector<Placement> StageDraft::*MemberOf(GroupKind kind) {
  switch (kind) {
    case GroupKind::kActivations:
      break;
    case GroupKind::kParameters:
      return &StageDraft::parameters;
    case GroupKind::kGradients:
      return &StageDraft::gradients;
    case GroupKind::kOptimizerState:
      return &StageDraft::optimizer_state;
    case GroupKind::kWeightVersions:
      return &StageDraft::weight_versions;
  }
  return &StageDraft::activations;
}

// Writes the groups of one stage.
class StagePlanWriter {
 public:
  StagePlanWriter(const PlanningProblem& problem, const StageRange& stage, const StageDraft& draft,
                  const std::vector<LenderWeight>& lenders)
      : problem_(problem), stage_(stage), draft_(draft), lenders_(lenders) {}

  StagePlan Write() {
    plan_.update = draft_.update;
    away_ = draft_.timing.groups_away_between_steps;
    streamed_ = draft_.groups_streamed;
    for (int kind = 0; kind < kGroupKinds; ++kind) AddRuns(static_cast<GroupKind>(kind));
    if (AnyStreamed()) plan_.stream_buffers = draft_.stream_buffers;
    return std::move(plan_);
  }

 private:
  static constexpr int kNotStreamed = -1;

  Placement PlacementOf(GroupKind kind, int layer) const {
    const Placement wanted = PlacementsOf(draft_, kind)[layer];
    return wanted == Placement::kPeerSwap && lenders_.empty() ? Placement::kKeep : wanted;
  }

  int BlockOf(int layer) const { return draft_.weight_run > 0 ? layer / draft_.weight_run : 0; }

  bool IsStreamed(GroupKind kind, int layer) const {
    return draft_.weights == WeightResidence::kLayerByLayer && IsSwap(PlacementOf(kind, layer));
  }

  bool AnyStreamed() const {
    for (const GroupKind kind : {GroupKind::kParameters, GroupKind::kGradients}) {
      const auto layers = static_cast<int>(PlacementsOf(draft_, kind).size());
      for (int layer = 0; layer < layers; ++layer) {
        if (IsStreamed(kind, layer)) return true;
      }
    }
    return false;
  }

  // The block in which the layer's optimizer step is taken.
  int StepBlockOf(int layer) const {
    const bool streams =
        IsStreamed(GroupKind::kParameters, layer) || IsStreamed(GroupKind::kGradients, layer);
    return streams ? BlockOf(layer) : kNotStreamed;
  }

  // Which parameters the layer is computed again with.
  std::pair<int, Placement> ParametersOf(int layer) const {
    if (!IsStreamed(GroupKind::kParameters, layer)) return {kNotStreamed, Placement::kKeep};
    return {BlockOf(layer), PlacementOf(GroupKind::kParameters, layer)};
  }

  // Whether a group of that kind which begins with layer `first` can have layer `next`, too, when
  // it has all between them.
  bool GoTogether(GroupKind kind, int first, int next) const {
    const Placement placement = PlacementOf(kind, first);
    if (PlacementOf(kind, next) != placement) return false;
    const auto within = [&](int run) { return run == 0 || next - first < run; };
    switch (kind) {
      case GroupKind::kActivations:
        if (FirstTensors(first) > 0 || FirstTensors(next) > 0) return false;
        if (placement != Placement::kKeep && draft_.shares[first] != draft_.shares[next]) {
          return false;
        }
        if (placement != Placement::kRecompute)
          return !IsSwap(placement) || within(draft_.swap_run);
        return within(draft_.recompute_run) && ParametersOf(first) == ParametersOf(next);
      case GroupKind::kParameters:
      case GroupKind::kGradients:
        return !IsSwap(placement) || BlockOf(first) == BlockOf(next);
      case GroupKind::kOptimizerState:
        if (StepBlockOf(first) != StepBlockOf(next)) return false;
        if (StepBlockOf(first) != kNotStreamed) return true;
        // What steps on the host copies while another does.
        if (StepsThere(placement)) return false;
        return !IsSwap(placement) || within(draft_.swap_run);
      case GroupKind::kWeightVersions:
        return !IsSwap(placement) || within(draft_.swap_run);
    }
    return false;
  }

  // Whether the next group of optimizer state, so placed, steps on the host: what is home between
  // steps, or streamed, does not.
  bool StepsThere(Placement placement) const {
    if (placement != Placement::kHostSwap || draft_.update != UpdatePlace::kHost) return false;
    return streamed_ <= 0 && (away_ > 0 || !draft_.timing.home_beside_host);
  }

  // Of the layer's activations how many, as StageDraft says; 0, all of them, also where the rest is
  // what the next layer saves anyway.
  int FirstTensors(int layer) const {
    const int some = draft_.first_tensors[layer];
    if (some == 0 || PlacementOf(GroupKind::kActivations, layer) == Placement::kKeep) return 0;
    const int index = stage_.begin + layer;
    const TensorGroup all =
        GroupOf(problem_.profile, stage_, GroupKind::kActivations, {index, index + 1});
    return FirstTensorsGroup(problem_.profile, index, some).bytes < all.bytes ? some : 0;
  }

  TensorGroup TensorsOf(GroupKind kind, const StageRange& layers) const {
    const int first =
        kind == GroupKind::kActivations ? FirstTensors(layers.begin - stage_.begin) : 0;
    return GroupOf(problem_.profile, stage_, kind, layers, first);
  }

  void AddRuns(GroupKind kind) {
    const auto layers = static_cast<int>(PlacementsOf(draft_, kind).size());
    for (int begin = 0; begin < layers;) {
      int end = begin + 1;
      while (end < layers && GoTogether(kind, begin, end)) ++end;
      const bool steps = kind == GroupKind::kOptimizerState &&
                         draft_.update == UpdatePlace::kDevice &&
                         StepBlockOf(begin) != kNotStreamed;
      Add(kind, {stage_.begin + begin, stage_.begin + end}, PlacementOf(kind, begin), steps);
      begin = end;
    }
  }

  // `steps`: by itself, so that even without bytes it needs a group.
  void Add(GroupKind kind, const StageRange& layers, Placement placement, bool steps) {
    PlannedGroup planned{.group = TensorsOf(kind, layers), .choice = {.placement = placement}};
    const bool empty = planned.group.bytes == Bytes(0);
    if (empty && !steps) return;
    if (empty) planned.choice.placement = Placement::kKeep;
    if (planned.choice.placement == Placement::kPeerSwap) {
      planned.choice.stripes = CutStripes(planned.group.bytes, lenders_, problem_.granule);
    }
    if (kind == GroupKind::kOptimizerState && IsSwap(planned.choice.placement)) {
      const bool steps_there = StepsThere(planned.choice.placement);
      planned.choice.steps_on_device = StepsOnHost(plan_, planned) && !steps_there;
      --away_;
      --streamed_;
    }
    plan_.groups.push_back(std::move(planned));
  }

  const PlanningProblem& problem_;
  const StageRange stage_;
  const StageDraft& draft_;
  const std::vector<LenderWeight>& lenders_;
  StagePlan plan_;
  // Of the groups of optimizer state that are still to come: streamed, and away between steps.
  int streamed_ = 0;
  int away_ = 0;
};

// Of the stage's layers, behind those of the stages before it.
void AddMadeAhead(const StageDraft& stage, std::vector<int>& made_ahead) {
  const size_t first = made_ahead.size();
  made_ahead.resize(first + stage.activations.size(), LowerMemoryOptions::kInBackward);
  int left = stage.layers_made_early;
  for (size_t layer = stage.activations.size(); layer > 0 && left > 0; --layer) {
    if (stage.activations[layer - 1] != Placement::kRecompute) continue;
    made_ahead[first + layer - 1] = std::max(0, stage.actions_made_early);
    --left;
  }
}

}  // namespace

DraftPlan KeepingDraft(const PlanningProblem& problem) {
  const int workers = WorkerCount(problem.schedule);
  DraftPlan draft{
      .mapping = problem.mapping.value_or(IdentityMapping(workers * problem.schedule.replicas))};
  const std::vector<int> versions = PeakWeightVersions(problem.schedule);
  for (const StageRange& stage : problem.partition.stages) {
    const auto layers = static_cast<size_t>(stage.end - stage.begin);
    const std::vector<Placement> kept(layers, Placement::kKeep);
    const bool stashes = versions[draft.stages.size()] > 1;
    draft.stages.push_back({.activations = kept,
                            .first_tensors = std::vector<int>(layers, 0),
                            .shares = std::vector<int>(layers, LowerMemoryOptions::kShares),
                            .parameters = kept,
                            .gradients = kept,
                            .optimizer_state = kept,
                            .weight_versions = stashes ? kept : std::vector<Placement>()});
  }
  draft.lenders.resize(static_cast<size_t>(workers));
  return draft;
}

std::vector<Placement>& PlacementsOf(StageDraft& stage, GroupKind kind) {
  return stage.*MemberOf(kind);
}

const std::vector<Placement>& PlacementsOf(const StageDraft& stage, GroupKind kind) {
  return stage.*MemberOf(kind);
}

bool CanStream(const PlanningProblem& problem, StageId stage) {
  const int worker = problem.schedule.worker_of_stage[stage.value].value;
  const std::vector<Action>& program = problem.schedule.programs[worker];
  return std::none_of(program.begin(), program.end(), [stage](const Action& action) {
    return action.kind == ActionKind::kUpdate && action.stage == stage;
  });
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
    options.weights.push_back(stage.weights);
    options.state_times.push_back(stage.state_times);
    options.shares.insert(options.shares.end(), stage.shares.begin(), stage.shares.end());
    AddMadeAhead(stage, options.made_ahead);
  }
  return options;
}

void Apply(const DraftMove& move, DraftPlan& draft) {
  StageDraft& stage = draft.stages[move.stage];
  switch (move.what) {
    case DraftMove::What::kTensors:
      PlacementsOf(stage, move.kind)[move.layer] = move.to;
      break;
    case DraftMove::What::kUpdateOnHost:
      PutStepOnHost(stage);
      break;
  }
}

void PutStepOnHost(StageDraft& stage) {
  stage.update = UpdatePlace::kHost;
  std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap);
}

DraftPlan Replace(DraftPlan draft, Placement from, Placement activations_to, Placement rest_to) {
  for (StageDraft& stage : draft.stages) {
    for (int index = 0; index < kGroupKinds; ++index) {
      const auto kind = static_cast<GroupKind>(index);
      std::vector<Placement>& layers = PlacementsOf(stage, kind);
      std::replace(layers.begin(), layers.end(), from,
                   kind == GroupKind::kActivations ? activations_to : rest_to);
    }
  }
  return draft;
}

bool Uses(const DraftPlan& draft, Placement placement) {
  for (const StageDraft& stage : draft.stages) {
    for (int kind = 0; kind < kGroupKinds; ++kind) {
      const std::vector<Placement>& layers = PlacementsOf(stage, static_cast<GroupKind>(kind));
      if (std::find(layers.begin(), layers.end(), placement) != layers.end()) return true;
    }
  }
  return false;
}

bool AnyStageStepsOnHost(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(),
                     [](const StageDraft& stage) { return stage.update == UpdatePlace::kHost; });
}

}  // namespace siphon
