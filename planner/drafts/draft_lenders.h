#ifndef SIPHON_PLANNER_DRAFTS_DRAFT_LENDERS_H_
#define SIPHON_PLANNER_DRAFTS_DRAFT_LENDERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/planning_problem.h"
#include "planner/mapping/parking_demand.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/simulator/lent_memory.h"
#include "planner/simulator/simulated_step.h"

namespace siphon {

// What lenders were found to have too little for, and so lend less.
struct WithheldMemory {
  std::vector<Bytes> workers;  // [worker]
  std::vector<Bytes> idle;     // [device]: of those without a worker
};

// Who lends what to whom in drafts of one problem. Simulates nothing.
class DraftLenders {
 public:
  // The problem must outlive this.
  explicit DraftLenders(const PlanningProblem& problem);

  // Devices lend to workers, not to replicas of them, which would all have to share one plan.
  bool MayLend() const;
  Bytes CapacityOf(int worker) const;  // 0: no limit
  // [stage]: of how many microbatches the activations can be away at once.
  const std::vector<int>& away() const { return away_; }
  // What a worker would have with its lenders if all of them had room.
  Bytes ParkedBy(const DraftPlan& draft, int worker) const;
  // [worker]: the same of those that have no lenders; of others 0.
  std::vector<Bytes> NotGiven(const DraftPlan& draft) const;
  // Workers that have something to give, and no lenders, give to all. Returns whether any does.
  bool GiveToAll(DraftPlan& draft) const;

  // What each worker gives, and, by what it has at its fullest if nothing were lent, has to lend.
  ParkingDemand DemandOf(const std::vector<Bytes>& own_peaks, const WithheldMemory& withheld,
                         const DraftPlan& draft) const;

  WithheldMemory WithheldNothing() const;
  // [device]: by how much devices without a worker are over their memory.
  std::vector<Bytes> IdleExcess(const SimulatedStep& step) const;
  // Adds that. Returns whether it is anything.
  bool WithholdIdle(const SimulatedStep& step, WithheldMemory& withheld) const;

  // Assigns the draft's lenders by what each worker needs at its fullest if nothing were lent
  // (AssignParking). Returns [worker]: bytes that no lender has room for.
  absl::StatusOr<std::vector<Bytes>> Assign(const std::vector<Bytes>& own_peaks,
                                            const WithheldMemory& withheld, DraftPlan& draft) const;
  // By what each has parked and can lend at each moment of a step (AssignParkingOverTime). Returns
  // whether there is room for all; else the draft stays as it is.
  absl::StatusOr<bool> AssignOverTime(const LentMemory& lent, const WithheldMemory& withheld,
                                      DraftPlan& draft) const;

 private:
  // The problem's, where devices without a worker have as much less to lend.
  SwapFabric FabricLess(const WithheldMemory& withheld) const;
  // [worker][moment]: what it can lend, but for `withheld` ([worker]).
  std::vector<std::vector<Bytes>> LendableOf(const LentMemory& lent,
                                             const std::vector<Bytes>& withheld) const;

  const PlanningProblem& problem_;
  const std::vector<int> away_;
  const std::vector<int> versions_;  // [stage]: of the weights, at most, all of which may be away
  const SwapFabric fabric_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_DRAFT_LENDERS_H_
