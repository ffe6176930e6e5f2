#ifndef SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_
#define SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/strategies/draft_simulator.h"

namespace siphon {

// Gives what is swapped in `simulated.memory` its second choice. What is with lenders or drives
// goes to the host, or else activations are computed again and the rest goes to the host. What is
// with the host is computed again, if it is activations, and goes to drives otherwise. Every second
// choice of what is at one place has to fit at once, by simulation; where none does, and for
// weights with the host of a server without drives, none is given (kKeep): a place that refuses
// then ends the run. Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated);

// PlannedOf with second choices.
absl::StatusOr<PlannedStep> PlannedWithSecondChoices(DraftSimulator& simulator,
                                                     SimulatedDraft simulated,
                                                     absl::string_view strategy);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_
