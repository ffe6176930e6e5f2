#ifndef SIPHON_PLANNER_SEARCH_EXCHANGE_STEPS_H_
#define SIPHON_PLANNER_SEARCH_EXCHANGE_STEPS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// One more group of the stage's optimizer state steps on the host, a layer that is kept if none is
// swapped; or one less, which is then at home between steps. Return whether there is such a group,
// and none is with lenders or drives.
bool StepOneMoreOnHost(StageDraft& stage);
bool StepOneLessOnHost(StageDraft& stage);

// The best of `best` and of what comes of it by optimizer steps exchanged between the host and two
// workers' devices: where a step ends with the host's last one and with state that comes in late,
// no worker gains by itself, but one whose uplink is idle can take a step from the host, and
// another one give one to it. The times of both are found anew (TimeStagesHome). Pairs, and each of
// a pair alone, are tried from the worker that steps last, and the one that steps first, on. One is
// taken if the step and the mean end of its workers together get shorter.
//
// Begins no pair beyond so many simulations. Errors: as DraftSimulator::Run, but for
// ResourceExhausted.
absl::StatusOr<SimulatedDraft> ExchangeSteps(DraftSimulator& simulator, SimulatedDraft best,
                                             int most_simulations);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_EXCHANGE_STEPS_H_
