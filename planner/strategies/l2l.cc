#include <utility>

#include "planner/status.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/weight_draft.h"

namespace siphon {
namespace {

// All weights with the host, each layer's on the device only while that layer computes.
WeightDraft LayerToLayer(const PlanningProblem& problem, UpdatePlace update) {
  WeightDraft draft = KeepingWeights(problem);
  for (size_t stage = 0; stage < draft.size(); ++stage) {
    if (!CanStream(problem, StageId(static_cast<int>(stage)))) continue;
    draft[stage].update = update;
    const bool state = update == UpdatePlace::kDevice;
    for (LayerWeights& layer : draft[stage].layers) {
      layer = {.parameters = true, .gradients = true, .optimizer_state = state};
    }
  }
  return draft;
}

absl::StatusOr<SimulatedWeights> Faster(absl::StatusOr<SimulatedWeights> a,
                                        absl::StatusOr<SimulatedWeights> b) {
  if (!a.ok()) return b;
  if (!b.ok()) return a;
  if (Fits(*a) != Fits(*b)) return Fits(*a) ? std::move(a) : std::move(b);
  return b->simulated.step_time < a->simulated.step_time ? std::move(b) : std::move(a);
}

}  // namespace

// Layer to layer (Pudipeddi et al. 2020, as section 2 of the weight offloading paper,
// hal-03580767, tells it), on each worker: one layer's weights are in use, the next one's come in,
// and gradients, which add up over microbatches, go out again behind their layer. The host computes
// the optimizer step where its time is known and that is faster. Activations stay.
//
// The paper's L2L lets computation and copies take turns; here the next layer comes in meanwhile.
absl::StatusOr<PlannedStep> PlanLayerToLayer(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  absl::StatusOr<SimulatedWeights> best =
      SimulateWeights(problem, LayerToLayer(problem, UpdatePlace::kDevice));
  if (problem.host_step > Nanos(0)) {
    best = Faster(std::move(best),
                  SimulateWeights(problem, LayerToLayer(problem, UpdatePlace::kHost)));
  }
  if (!best.ok()) return best.status();
  return PlannedOf(problem, *std::move(best), "l2l");
}

}  // namespace siphon
