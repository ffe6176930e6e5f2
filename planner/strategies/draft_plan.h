#ifndef SIPHON_PLANNER_STRATEGIES_DRAFT_PLAN_H_
#define SIPHON_PLANNER_STRATEGIES_DRAFT_PLAN_H_

#include <vector>

#include "planner/memory_plan.h"
#include "planner/strategies/lower_memory_plan.h"
#include "planner/strategies/planning_problem.h"

namespace siphon {

// What a search decides for one stage: layer by layer, and how neighbouring layers go together.
struct StageDraft {
  std::vector<Placement> activations;  // [layer of the stage]
  // Likewise; never kRecompute. Means nothing with an update on the host, which holds it then.
  std::vector<Placement> optimizer_state;
  // Likewise, of each stashed version of the layer's weights; empty where the schedule stashes
  // none.
  std::vector<Placement> weight_versions;
  UpdatePlace update = UpdatePlace::kDevice;
  int recompute_run = 1;  // most neighbouring layers in one group; 0: all
  int swap_run = 1;       // likewise
  SwapTiming timing;
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

// Groups of neighbouring layers with one placement. Those without bytes are left out. What shall
// go to lenders is kept where the worker has none.
MemoryPlan PlanOf(const PlanningProblem& problem, const DraftPlan& draft);

LowerMemoryOptions LoweringOf(const DraftPlan& draft);

// One layer's step away from keeping everything.
struct DraftMove {
  enum class What { kActivations, kOptimizerState, kWeightVersions, kUpdateOnHost };
  int stage = 0;
  What what = What::kActivations;
  int layer = 0;                    // of the stage; kUpdateOnHost: none
  Placement to = Placement::kKeep;  // kUpdateOnHost: none
  friend bool operator==(const DraftMove&, const DraftMove&) = default;
};
void Apply(const DraftMove& move, DraftPlan& draft);

// The draft with all that has placement `from` placed at `to`; all kinds of tensors alike, but
// that only activations are recomputed, and the others go to the host instead.
DraftPlan Replace(DraftPlan draft, Placement from, Placement to);

bool Uses(const DraftPlan& draft, Placement placement);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_DRAFT_PLAN_H_
