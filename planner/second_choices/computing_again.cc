#include "planner/second_choices/computing_again.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "planner/simulator/simulate_times.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

// The tiers that such groups are on, one by one, and all together.
std::vector<std::vector<Placement>> TiersOf(const MemoryPlan& plan) {
  std::vector<std::vector<Placement>> tiers;
  std::vector<Placement> all;
  for (const Placement tier : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap}) {
    const bool any = absl::c_any_of(plan.stages, [&](const StagePlan& stage) {
      return absl::c_any_of(stage.groups, [&](const PlannedGroup& planned) {
        return planned.choice.placement == tier && WouldGo(planned, Placement::kRecompute);
      });
    });
    if (!any) continue;
    tiers.push_back({tier});
    all.push_back(tier);
  }
  if (all.size() > 1) tiers.push_back(std::move(all));
  return tiers;
}

// [worker]: its fullest moment, without what it lends.
absl::StatusOr<std::vector<Bytes>> OwnPeaks(const PlanningProblem& problem,
                                            const DeviceMapping& mapping, const FollowedPlan& plan,
                                            const std::vector<MemoryByKind>& held) {
  PlanningProblem unlimited = problem;
  unlimited.capacity.clear();
  unlimited.topology.host_memory = Bytes(0);
  unlimited.held = held;
  SIPHON_ASSIGN_OR_RETURN(
      const StepTimes times,
      SimulateTimes(SimulationOf(unlimited, mapping, plan.memory, plan.schedule),
                    LendingDetail::kLent));
  return OwnPeaks(times.lent);
}

}  // namespace

absl::StatusOr<std::vector<Bytes>> PeaksComputingAgain(
    const PlanningProblem& problem, const DeviceMapping& mapping, const FollowedPlan& plan,
    const std::vector<Bytes>& peak, const std::vector<MemoryByKind>& held_to_recompute) {
  const std::vector<std::vector<Placement>> tiers = TiersOf(plan.memory);
  if (tiers.empty()) return peak;
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> before,
                          OwnPeaks(problem, mapping, plan, problem.held));
  std::vector<Bytes> most = peak;
  for (const std::vector<Placement>& concerned : tiers) {
    std::vector<MemoryByKind> held = problem.held;
    held.resize(peak.size());  // empty: nothing
    SIPHON_ASSIGN_OR_RETURN(
        const FollowedPlan taken,
        TakeSecondChoices(plan, [&](StageId stage, const PlannedGroup& planned) {
          const bool takes = WouldGo(planned, Placement::kRecompute) &&
                             absl::c_linear_search(concerned, planned.choice.placement);
          if (takes && !held_to_recompute.empty()) {
            const int worker = plan.schedule.worker_of_stage[stage.value].value;
            held[worker] = held_to_recompute[worker];
          }
          return takes;
        }));
    const absl::Status valid =
        ValidateSchedule(taken.schedule, SchedulePurpose::kTraining, taken.memory);
    if (!valid.ok()) return absl::FailedPreconditionError(valid.message());
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> own, OwnPeaks(problem, mapping, taken, held));
    for (size_t worker = 0; worker < most.size(); ++worker) {
      most[worker] = std::max(most[worker], peak[worker] + own[worker] - before[worker]);
    }
  }
  return most;
}

}  // namespace siphon
