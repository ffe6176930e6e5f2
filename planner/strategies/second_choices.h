#ifndef SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_
#define SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_

#include "absl/status/status.h"
#include "planner/strategies/draft_simulator.h"

namespace siphon {

// Gives what is swapped to lenders or drives in `simulated.memory` its second choice: the host, or
// else (activations only, state then goes to the host) recomputation. Every second choice at once
// has to fit, by simulation; where neither does, none is given (kKeep), and a lender that refuses
// ends the run. What goes to the host has recomputation as its second choice where that fits.
// Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_
