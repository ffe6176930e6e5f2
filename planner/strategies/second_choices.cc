#include "planner/strategies/second_choices.h"

#include "planner/status.h"
#include "planner/strategies/start_drafts.h"

namespace siphon {
namespace {

absl::StatusOr<bool> FitsWith(DraftSimulator& simulator, const DraftPlan& draft, Placement from,
                              Placement to) {
  const absl::StatusOr<SimulatedDraft> tried = simulator.Run(Replace(draft, from, to));
  if (tried.ok()) return Fits(*tried);
  if (absl::IsResourceExhausted(tried.status())) return false;
  return tried.status();
}

void Give(MemoryPlan& plan, Placement from, Placement activations, Placement state) {
  for (StagePlan& stage : plan.stages) {
    for (PlannedGroup& planned : stage.groups) {
      if (planned.choice.placement != from) continue;
      planned.choice.second_choice =
          planned.group.kind == GroupKind::kActivations ? activations : state;
    }
  }
}

}  // namespace

absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated) {
  const DraftPlan draft = simulated.draft;
  const bool host = ReachesHost(simulator.problem(), draft.mapping);
  for (const Placement from : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap}) {
    if (!Uses(draft, from)) continue;
    const Placement state =
        host && from != Placement::kHostSwap ? Placement::kHostSwap : Placement::kKeep;
    if (state == Placement::kHostSwap) {
      SIPHON_ASSIGN_OR_RETURN(const bool fits, FitsWith(simulator, draft, from, state));
      if (fits) {
        Give(simulated.memory, from, state, state);
        continue;
      }
    }
    SIPHON_ASSIGN_OR_RETURN(const bool fits,
                            FitsWith(simulator, draft, from, Placement::kRecompute));
    if (fits) Give(simulated.memory, from, Placement::kRecompute, state);
  }
  return absl::OkStatus();
}

}  // namespace siphon
