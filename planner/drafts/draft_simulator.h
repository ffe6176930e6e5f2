#ifndef SIPHON_PLANNER_DRAFTS_DRAFT_SIMULATOR_H_
#define SIPHON_PLANNER_DRAFTS_DRAFT_SIMULATOR_H_

#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_lenders.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/known_programs.h"
#include "planner/drafts/known_steps.h"
#include "planner/drafts/planning_problem.h"
#include "planner/mapping/parking_demand.h"

namespace siphon {

// Less is better.
struct DraftScore {
  // Above the capacities, all workers and lenders without one together; 0: the plan fits.
  Bytes excess;
  Nanos step;
  friend auto operator<=>(const DraftScore&, const DraftScore&) = default;
};

struct SimulatedDraft {
  DraftPlan draft;  // with its lenders
  MemoryPlan memory;
  Schedule schedule;
  // Without limits, so that one sees by how much it does not fit; without lanes and curves of
  // memory.
  SimulatedStep simulated;
  // [worker]: what it holds at most, as simulated or, under a problem's LendingRule::kPeaks, by
  // PromisedPeaks.
  std::vector<Bytes> peaks;
  std::vector<Bytes> excess;  // [worker], over its capacity; what no lender has room for included
  DraftScore score;
};
bool Fits(const SimulatedDraft& simulated);

// Puts `tried` into the place of `best` where it is better, and says whether it was. One for which
// there was no room (ResourceExhausted) is not. Errors: others of `tried`.
absl::StatusOr<bool> TakeIfBetter(absl::StatusOr<SimulatedDraft> tried, SimulatedDraft& best);

// Simulates drafts of one problem, and counts.
class DraftSimulator {
 public:
  // The problem must outlive this. `known`: steps that it knows again, at most. Requires:
  // CheckPlanningProblem.
  explicit DraftSimulator(const PlanningProblem& problem, size_t known = KnownSteps::kMostSteps);

  const PlanningProblem& problem() const { return problem_; }
  // Drafts run, and what workers hold without lenders; not the rounds of AssignParkingOverTime.
  int simulations() const { return simulations_; }

  // Lenders are assigned anew, exactly (AssignParking): each worker lends what it does not need at
  // its own fullest, and has lent at most the bytes of all microbatches that can be away at once;
  // devices without a worker lend all that they have. Where that is not room enough, kOverTime
  // tries what the simulated step says about each moment (AssignParkingOverTime): copies then run
  // at other moments, so the step is simulated again, a few times; the best of all of these is what
  // comes back, so never less than with peaks alone. Where the problem has kPeaks, lenders have
  // room for all that is promised with them, too.
  // No draft fits with a worker that gives something and has no lenders, even if it has room for
  // all that: it would be another draft's plan. Errors: ResourceExhausted when host or drives have
  // too little; InvalidArgument when there is no way to a placement (no host, no drive).
  absl::StatusOr<SimulatedDraft> Run(DraftPlan draft);

  // The step of a plan of the draft's stages and lenders that differs from the draft's own only in
  // where groups go, lowered with the draft's timing. Errors: as Run; and as LowerMemoryPlan, where
  // groups cannot go so.
  absl::StatusOr<SimulatedDraft> RunPlan(DraftPlan draft, MemoryPlan memory);

  // kPeaks at first, and always where the problem says so.
  void LendBy(LendingRule rule) { lending_ = rule; }
  LendingRule lending() const { return lending_; }
  bool MayLendOverTime() const { return problem_.lending == LendingRule::kOverTime && MayLend(); }
  bool MayLend() const { return lenders_.MayLend(); }

  // What workers give in a draft, and the most that Run takes them to lend on any map. None where
  // what they hold hangs on more than their programs and messages, or where lenders are assigned
  // moment by moment. Errors: as Run.
  absl::StatusOr<std::optional<ParkingDemand>> DemandOnAnyMap(const DraftPlan& draft);

  // Whether host, drives or a device without a worker had too little memory for any draft so far.
  bool has_refused() const { return has_refused_; }
  // Of another simulator of the problem.
  void CountRefusal() { has_refused_ = true; }

  Bytes CapacityOf(int worker) const { return lenders_.CapacityOf(worker); }  // 0: no limit
  // Whether the worker holds more than that; what no lender has room for is left out.
  bool IsFull(const SimulatedDraft& simulated, size_t worker) const {
    const Bytes capacity = CapacityOf(static_cast<int>(worker));
    return capacity > Bytes(0) && simulated.peaks[worker] > capacity;
  }
  const std::vector<int>& away() const { return lenders_.away(); }
  Bytes ParkedBy(const DraftPlan& draft, int worker) const {
    return lenders_.ParkedBy(draft, worker);
  }

 private:
  // Without its score; `lent` is filled where there is one.
  absl::StatusOr<SimulatedDraft> Simulated(DraftPlan draft, LentMemory* lent = nullptr);
  absl::StatusOr<SimulatedDraft> SimulatedPlan(DraftPlan draft, MemoryPlan memory,
                                               LentMemory* lent);
  // The same, without a note of what was refused.
  absl::StatusOr<SimulatedDraft> TriedPlan(DraftPlan draft, MemoryPlan memory, LentMemory* lent);
  // A draft that uses lenders, under a problem's kPeaks.
  absl::StatusOr<SimulatedDraft> RunPromised(DraftPlan draft);
  // `parked`, all of which lenders have room for, with less for those that its stripes fill.
  absl::StatusOr<SimulatedDraft> LendLess(SimulatedDraft parked);
  // What is over capacity and `unparked` ([worker]) is its excess.
  void SetScore(const std::vector<Bytes>& unparked, SimulatedDraft& result) const;
  // The lenders of `peaks` have too little room at their fullest; `lent` is of its step.
  absl::StatusOr<SimulatedDraft> LendOverTime(SimulatedDraft peaks, LentMemory lent);
  // What workers would do if nothing were lent.
  static DraftPlan WithoutLenders(const DraftPlan& draft);
  // [worker]: at its fullest then.
  absl::StatusOr<std::vector<Bytes>> OwnPeaks(const DraftPlan& draft);
  // Returns [worker]: bytes that no lender has room for.
  absl::StatusOr<std::vector<Bytes>> AssignLenders(const WithheldMemory& withheld,
                                                   DraftPlan& draft);
  std::vector<Bytes> PeaksOf(const SimulatedStep& step) const;

  const PlanningProblem& problem_;
  const DraftLenders lenders_;
  KnownPrograms programs_;
  KnownSteps known_;
  LendingRule lending_ = LendingRule::kPeaks;
  int simulations_ = 0;
  bool has_refused_ = false;
  // The latest answer of OwnPeaks.
  DraftPlan kept_;
  std::vector<Bytes> kept_peaks_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_DRAFT_SIMULATOR_H_
