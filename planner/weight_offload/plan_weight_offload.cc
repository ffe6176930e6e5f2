#include "planner/weight_offload/plan_weight_offload.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

std::vector<CuttingPoint> CuttingPoints(const std::vector<Removal>& removals, Discount discount) {
  std::vector<CuttingPoint> cuts;
  for (int early = 0; early <= NumFetchesForBackward(removals); ++early) cuts.push_back({early, 0});
  const int sends = NumSendsAfterForward(removals, discount);
  for (int late = 1; late <= sends; ++late) cuts.push_back({0, late});
  return cuts;
}

WeightOffloadChoice ShortestStep(const WeightOffloadProblem& problem, std::vector<Removal> removals,
                                 Discount discount) {
  std::optional<WeightOffloadChoice> best;
  for (const CuttingPoint& cut : CuttingPoints(removals, discount)) {
    std::optional<ScheduledRemovals> scheduled = ScheduleRemovals(problem, removals, discount, cut);
    if (!scheduled || (best && best->scheduled.step_time <= scheduled->step_time)) continue;
    best = WeightOffloadChoice{{}, cut, *std::move(scheduled)};
    if (best->scheduled.step_time == ComputeTime(problem)) break;  // nothing is shorter
  }
  SIPHON_CHECK(best.has_value(), "memory has room for the removals that were selected");
  best->removals = std::move(removals);
  return *std::move(best);
}

// Drops the removal if the step is no longer without it.
void TryWithout(const WeightOffloadProblem& problem, size_t index, WeightOffloadChoice* choice) {
  std::vector<Removal> fewer = choice->removals;
  fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(index));
  if (choice->cut.early > NumFetchesForBackward(fewer) ||
      choice->cut.late > NumSendsAfterForward(fewer, Discount::kUse)) {
    return;
  }
  std::optional<ScheduledRemovals> scheduled =
      ScheduleRemovals(problem, fewer, Discount::kUse, choice->cut);
  if (!scheduled || scheduled->step_time > choice->scheduled.step_time) return;
  choice->removals = std::move(fewer);
  choice->scheduled = *std::move(scheduled);
}

}  // namespace

absl::StatusOr<WeightOffloadChoice> PlanWeightOffload(const WeightOffloadProblem& problem,
                                                      Discount discount, Ties ties) {
  SIPHON_ASSIGN_OR_RETURN(std::vector<Removal> removals, SelectRemovals(problem, discount, ties));
  return ShortestStep(problem, std::move(removals), discount);
}

absl::StatusOr<WeightOffloadChoice> PlanTrimmedWeightOffload(const WeightOffloadProblem& problem) {
  std::optional<WeightOffloadChoice> best;
  for (const Discount discount : {Discount::kUse, Discount::kIgnore}) {
    for (const Ties ties : {Ties::kLastLayer, Ties::kFirstLayer}) {
      if (best && best->scheduled.step_time == ComputeTime(problem)) continue;
      SIPHON_ASSIGN_OR_RETURN(std::vector<Removal> removals,
                              SelectRemovals(problem, discount, ties));
      WeightOffloadChoice choice = ShortestStep(problem, std::move(removals), Discount::kUse);
      if (best && best->scheduled.step_time <= choice.scheduled.step_time) continue;
      best = std::move(choice);
    }
  }
  for (size_t index = best->removals.size(); index > 0; --index) {
    TryWithout(problem, index - 1, &*best);
  }
  return *std::move(best);
}

}  // namespace siphon
