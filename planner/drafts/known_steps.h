#ifndef SIPHON_PLANNER_DRAFTS_KNOWN_STEPS_H_
#define SIPHON_PLANNER_DRAFTS_KNOWN_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/known_programs.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/simulator/simulate_times.h"

namespace siphon {

// Simulates steps of one problem, and knows those that it has simulated lately: searches come to
// the same step again and again, since a bisection of all workers at once repeats those that are
// found, and many decisions mean nothing for a stage that swaps nothing.
//
// Invariant: what it answers is what SimulateTimes would.
class KnownSteps {
 public:
  static constexpr size_t kMostSteps = 10'000;

  // The problem must outlive this. `most_steps`: of which it knows so many at most; at least 1.
  explicit KnownSteps(const PlanningProblem& problem, size_t most_steps = kMostSteps);

  // Without capacities of workers, so that one sees by how much a plan does not fit.
  // Requires: `plan` is `memory` lowered by the problem's KnownPrograms, always the same; kLent: no
  // replicas.
  // Errors: as SimulateTimes.
  absl::StatusOr<StepTimes> Run(const DeviceMapping& mapping, const MemoryPlan& memory,
                                const LoweredPlan& plan,
                                LendingDetail lending = LendingDetail::kNone);

  int simulations() const { return simulations_; }  // without those that were known
  const StepRuns& runs() const { return space_.runs; }

 private:
  struct Step {
    uint64_t key = 0;  // equal for equal maps and programs
    DeviceMapping mapping;
    std::vector<int64_t> programs;  // their names
    LendingDetail lending = LendingDetail::kNone;
    absl::StatusOr<StepTimes> times = StepTimes{};
    size_t bytes = 0;
  };

  using Place = std::list<Step>::iterator;

  // steps_.end(): not known.
  Place Find(uint64_t key, const DeviceMapping& mapping, const std::vector<int64_t>& programs);
  void Remember(Step step);
  void Forget(Place step);

  const size_t most_steps_;
  SimulationInput input_;
  SimulationSpace space_;
  std::list<Step> steps_;  // those used last come first
  std::unordered_multimap<uint64_t, Place> by_key_;
  size_t bytes_ = 0;
  int simulations_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_KNOWN_STEPS_H_
