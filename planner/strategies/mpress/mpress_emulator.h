#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_EMULATOR_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_EMULATOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/known_programs.h"
#include "planner/drafts/known_steps.h"
#include "planner/drafts/planning_problem.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/simulator/simulated_step.h"

namespace siphon {

// A memory plan and what becomes of the step.
struct MpressCandidate {
  MemoryPlan memory;
  Schedule schedule;
  // Without limits, so that one sees by how much a worker is too full; without lanes and curves of
  // memory.
  SimulatedStep simulated;
  // [worker]: what it holds at most, as simulated or, under LendingRule::kPeaks, by PromisedPeaks.
  std::vector<Bytes> peaks;
  Bytes excess;  // over the capacities, all workers together
};

// Less excess; or as much and a step that is visibly faster, by a thousandth.
bool IsBetter(const MpressCandidate& a, const MpressCandidate& b);

// Stands for what a worker without a limit has left.
inline constexpr Bytes kPlenty{int64_t{1} << 50};

// Runs plans of one problem (MPress, section III.B, has an emulator for that), and counts them.
class MpressEmulator {
 public:
  // The problem must outlive this. Workers are where the problem wants them, or else in order.
  explicit MpressEmulator(const PlanningProblem& problem);

  // Errors: ResourceExhausted when the host or a device without a worker has too little memory.
  absl::StatusOr<MpressCandidate> Run(MemoryPlan memory);

  // What the worker has left at its fullest; negative where it is too full.
  Bytes SpareOf(const MpressCandidate& candidate, int worker) const;
  // [worker]
  std::vector<bool> FullWorkers(const MpressCandidate& candidate) const;

  const PlanningProblem& problem() const { return problem_; }
  const DeviceMapping& mapping() const { return mapping_; }
  void MapTo(DeviceMapping mapping) { mapping_ = std::move(mapping); }
  int simulations() const { return simulations_; }

  // From now on activations to be recomputed go although their backward comes at once. Returns
  // whether a stage of the worker did not before.
  bool DropDirectly(WorkerId worker);
  void ForgetDirectDrops();

 private:
  const PlanningProblem& problem_;
  DeviceMapping mapping_;
  KnownPrograms programs_;
  KnownSteps known_;
  LowerMemoryOptions lowering_;
  int simulations_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_EMULATOR_H_
