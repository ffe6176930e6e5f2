#include "tests/bench/plan_gaps/measure_tiny.h"

#include "absl/strings/str_cat.h"
#include "planner/bounds/lower_bound.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/bench/plan_gaps/every_draft.h"

namespace siphon {

absl::StatusOr<TinyOutcome> MeasureTiny(const GapInstance& instance, int64_t most_drafts) {
  SIPHON_ASSIGN_OR_RETURN(const DraftOptimum optimum,
                          BestOfEveryDraft(instance.problem, most_drafts));
  if (!optimum.best.has_value()) {
    return absl::ResourceExhaustedError(absl::StrCat("no draft of ", instance.name, " fits"));
  }
  SIPHON_ASSIGN_OR_RETURN(const MemoryStrategy strategy, FindMemoryStrategy("auto"));
  SIPHON_ASSIGN_OR_RETURN(const PlannedStep planned, strategy.plan(instance.problem));
  SIPHON_ASSIGN_OR_RETURN(const LowerBound bound, LowerBoundOf(instance.problem));
  return TinyOutcome{.drafts = optimum.drafts,
                     .best = optimum.best->score.step,
                     .planned = planned.simulated.step_time,
                     .bound = bound.step_time};
}

}  // namespace siphon
