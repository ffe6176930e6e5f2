#include <algorithm>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/weight_moves.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// All weights with the host, each layer's on the device only while that layer computes.
DraftPlan LayerToLayer(const PlanningProblem& problem, UpdatePlace update) {
  DraftPlan draft = StreamingDraft(problem);
  for (size_t index = 0; index < draft.stages.size(); ++index) {
    if (!CanStream(problem, StageId(static_cast<int>(index)))) continue;
    StageDraft& stage = draft.stages[index];
    stage.update = update;
    for (const GroupKind kind :
         {GroupKind::kParameters, GroupKind::kGradients, GroupKind::kOptimizerState}) {
      std::vector<Placement>& layers = PlacementsOf(stage, kind);
      std::fill(layers.begin(), layers.end(), Placement::kHostSwap);
    }
  }
  return draft;
}

}  // namespace

// Layer to layer (Pudipeddi et al. 2020, as section 2 of the weight offloading paper,
// hal-03580767, tells it), on each worker: one layer's weights are in use, the next one's come in,
// and gradients, which add up over microbatches, go out again behind their layer. The host computes
// the optimizer step where its time is known and that is faster. Activations stay.
//
// The paper's L2L lets computation and copies take turns; here the next layer comes in meanwhile.
absl::StatusOr<SimulatedDraft> DraftLayerToLayer(DraftSimulator& simulator) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> best = simulator.Run(LayerToLayer(problem, UpdatePlace::kDevice));
  if (problem.host_step == Nanos(0)) return best;
  return Better(std::move(best), simulator.Run(LayerToLayer(problem, UpdatePlace::kHost)));
}

absl::StatusOr<PlannedStep> PlanLayerToLayer(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftLayerToLayer, "l2l");
}

}  // namespace siphon
