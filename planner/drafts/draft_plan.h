#ifndef SIPHON_PLANNER_DRAFTS_DRAFT_PLAN_H_
#define SIPHON_PLANNER_DRAFTS_DRAFT_PLAN_H_

#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/memory_plan.h"

namespace siphon {

// What a search decides for one stage: layer by layer, and how neighbouring layers go together.
struct StageDraft {
  // [layer of the stage], while nobody needs them; all but activations never kRecompute.
  std::vector<Placement> activations;
  // [layer]: of activations that are not kept only so many, those that the layer saves first
  // (FirstTensorsOf), go where they are placed, in a group of their own; 0: all.
  std::vector<int> first_tensors;
  // [layer]: of so many of LowerMemoryOptions::kShares microbatches activations that are not kept
  // go where they are placed.
  std::vector<int> shares;
  std::vector<Placement> parameters;  // swapped only where CanStream says so, as are gradients
  std::vector<Placement> gradients;
  // With an update on the host, kHostSwap says that the layer steps there
  // (planner/steps_on_host.h), unless it is home between steps (SwapTiming::home_beside_host), or
  // streamed.
  std::vector<Placement> optimizer_state;
  // Likewise, of each stashed version of the layer's weights; empty where the schedule stashes
  // none.
  std::vector<Placement> weight_versions;
  UpdatePlace update = UpdatePlace::kDevice;
  // With an update on the host: of the groups of optimizer state that are swapped so many, the
  // first ones, step on the device all the same.
  int groups_streamed = 0;
  int recompute_run = 1;  // most neighbouring layers in one group; 0: all
  // Of the layers that are computed again so many, the last ones, are so before their backward,
  // this many compute actions (LowerMemoryOptions::made_ahead). Groups go together in it or not at
  // all.
  int layers_made_early = 0;
  int actions_made_early = 0;
  int swap_run = 1;  // likewise; of activations and optimizer state
  // Parameters and gradients that are away go by blocks of so many layers, counted from the
  // stage's first one; 0: all. The step of a block's layers is one.
  int weight_run = 1;
  WeightResidence weights = WeightResidence::kLayerByLayer;
  int stream_buffers = kMostStreamBuffers;  // StagePlan has it if anything streams
  SwapTiming timing;
  StateTimes state_times;
  DirectBackward direct = DirectBackward::kLeave;
  friend bool operator==(const StageDraft&, const StageDraft&) = default;
};

// A memory plan while it is looked for: small, and every value of it is a plan.
struct DraftPlan {
  std::vector<StageDraft> stages;
  DeviceMapping mapping;
  // [worker]: how what it gives to other devices is shared among them; empty: it gives nothing.
  std::vector<std::vector<LenderWeight>> lenders;
  friend bool operator==(const DraftPlan&, const DraftPlan&) = default;
};

// Everything kept. Workers are where the problem wants them, or else in order.
DraftPlan KeepingDraft(const PlanningProblem& problem);

// The stage's placements of that kind.
std::vector<Placement>& PlacementsOf(StageDraft& stage, GroupKind kind);
const std::vector<Placement>& PlacementsOf(const StageDraft& stage, GroupKind kind);

// Whether the stage's parameters, gradients and optimizer state can be away: not with updates in
// the middle of the step.
bool CanStream(const PlanningProblem& problem, StageId stage);

// Groups of neighbouring layers with one placement. Those without bytes are left out, but for
// optimizer state that steps with parameters or gradients which come in layer by layer. What shall
// go to lenders is kept where the worker has none. Layers that are computed again together have
// their parameters together, too.
MemoryPlan PlanOf(const PlanningProblem& problem, const DraftPlan& draft);

LowerMemoryOptions LoweringOf(const DraftPlan& draft);

// One layer's step away from keeping everything.
struct DraftMove {
  enum class What { kTensors, kUpdateOnHost };
  int stage = 0;
  What what = What::kTensors;
  GroupKind kind = GroupKind::kActivations;  // this and the others: of kTensors
  int layer = 0;                             // of the stage
  Placement to = Placement::kKeep;
  friend bool operator==(const DraftMove&, const DraftMove&) = default;
};
void Apply(const DraftMove& move, DraftPlan& draft);
// All layers step there.
void PutStepOnHost(StageDraft& stage);

// The draft with all that has placement `from` placed elsewhere: activations, and the rest, which
// is never recomputed.
DraftPlan Replace(DraftPlan draft, Placement from, Placement activations_to, Placement rest_to);

bool Uses(const DraftPlan& draft, Placement placement);
bool AnyStageStepsOnHost(const DraftPlan& draft);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_DRAFT_PLAN_H_
