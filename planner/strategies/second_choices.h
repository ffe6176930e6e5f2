#ifndef SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_
#define SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/strategies/draft_simulator.h"

namespace siphon {

// Gives what is swapped in `simulated.memory` its second choice. What is with lenders goes to the
// host, or else activations are computed again and the rest goes to the host or to drives; what is
// with drives likewise to the host; what is with the host is computed again, if it is activations,
// or goes to drives. All second choices of what is at one place have to fit at once, by simulation
// of the plan with just these groups elsewhere. Where no such choice fits all groups of a place,
// each worker takes one that fits for it, or as many of its groups as there is room for. What is
// left, weights on a server without drives above all, goes to lenders, into what these have beside
// their fullest moment (spare_lending.h).
//
// Left with none (kKeep) are those for which there is no room anywhere, and what the optimizer step
// of a stage works on on the host: a place that refuses then ends the run. Errors: as
// DraftSimulator::Run, but for ResourceExhausted.
absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_SECOND_CHOICES_H_
