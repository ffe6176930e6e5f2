#include "planner/strategies/second_choices.h"

#include <utility>
#include <vector>

#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/start_drafts.h"

namespace siphon {
namespace {

struct SecondChoice {
  Placement activations = Placement::kKeep;
  Placement weights = Placement::kKeep;  // and gradients and optimizer state
};

// What can be done instead, the best first.
std::vector<SecondChoice> SecondChoicesFor(const PlanningProblem& problem,
                                           const DeviceMapping& mapping, Placement from) {
  const bool host = ReachesHost(problem, mapping);
  if (from == Placement::kHostSwap) {
    std::vector<SecondChoice> choices;
    if (!problem.topology.drives.empty()) {
      choices.push_back({Placement::kRecompute, Placement::kNvmeSwap});
    }
    choices.push_back({Placement::kRecompute, Placement::kHostSwap});
    return choices;
  }
  if (!host) return {{Placement::kRecompute, Placement::kKeep}};
  return {{Placement::kHostSwap, Placement::kHostSwap},
          {Placement::kRecompute, Placement::kHostSwap}};
}

absl::StatusOr<bool> FitsWith(DraftSimulator& simulator, DraftPlan draft) {
  const absl::StatusOr<SimulatedDraft> tried = simulator.Run(std::move(draft));
  if (tried.ok()) return Fits(*tried);
  if (absl::IsResourceExhausted(tried.status())) return false;
  return tried.status();
}

void Give(MemoryPlan& plan, Placement from, const SecondChoice& given) {
  for (StagePlan& stage : plan.stages) {
    for (auto& [group, choice] : stage.groups) {
      if (choice.placement != from) continue;
      const Placement second =
          group.kind == GroupKind::kActivations ? given.activations : given.weights;
      choice.second_choice = second == from ? Placement::kKeep : second;
    }
  }
}

}  // namespace

absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated) {
  const DraftPlan draft = simulated.draft;
  for (const Placement from : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap}) {
    if (!Uses(draft, from)) continue;
    for (const SecondChoice& choice : SecondChoicesFor(simulator.problem(), draft.mapping, from)) {
      DraftPlan instead = Replace(draft, from, choice.activations, choice.weights);
      if (instead == draft) continue;  // nothing else than what is refused
      SIPHON_ASSIGN_OR_RETURN(const bool fits, FitsWith(simulator, std::move(instead)));
      if (!fits) continue;
      Give(simulated.memory, from, choice);
      break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PlannedStep> PlannedWithSecondChoices(DraftSimulator& simulator,
                                                     SimulatedDraft simulated,
                                                     absl::string_view strategy) {
  if (Fits(simulated)) SIPHON_RETURN_IF_ERROR(AddSecondChoices(simulator, simulated));
  return PlannedOf(simulator.problem(), std::move(simulated), strategy);
}

}  // namespace siphon
