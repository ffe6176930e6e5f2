#include "planner/second_choices/second_choice_trials.h"

#include <cstddef>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "planner/check_residency.h"
#include "planner/drafts/promised_peaks.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool Lends(const MemoryPlan& memory) {
  return absl::c_any_of(memory.stages, [](const StagePlan& stage) {
    return absl::c_any_of(stage.groups, [](const PlannedGroup& planned) {
      return planned.choice.placement == Placement::kPeerSwap;
    });
  });
}

// That a plan cannot be, and not that the problem is wrong: no way to a place, no room there, or
// programs that find groups in the wrong state.
bool CannotBe(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

SecondChoiceTrials::SecondChoiceTrials(const PlanningProblem& problem, const DeviceMapping& mapping,
                                       const Schedule& schedule)
    : problem_(problem),
      mapping_(mapping),
      schedule_(schedule),
      input_(SimulationOf(problem, mapping, {}, {})) {}

absl::StatusOr<bool> SecondChoiceTrials::Fit(const MemoryPlan& memory,
                                             const ConcernsGroup& concerns,
                                             const SecondStripes& stripes) {
  SIPHON_ASSIGN_OR_RETURN(const FollowedPlan taken,
                          TakeSecondChoices({memory, schedule_}, concerns, stripes));
  const absl::Status valid = CheckResidency(taken.schedule, taken.memory);
  if (CannotBe(valid)) return false;
  SIPHON_RETURN_IF_ERROR(valid);
  const absl::StatusOr<bool> room = HasRoom(taken);
  if (CannotBe(room.status())) return false;
  return room;
}

absl::StatusOr<bool> SecondChoiceTrials::HasRoom(const FollowedPlan& taken) {
  input_.memory = taken.memory;
  input_.schedule = taken.schedule;
  const bool promises = problem_.lending == LendingRule::kPeaks;
  const bool lends = promises && problem_.schedule.replicas == 1 && Lends(taken.memory);
  SIPHON_ASSIGN_OR_RETURN(
      const StepTimes times,
      SimulateTimes(input_, lends ? LendingDetail::kLent : LendingDetail::kNone, space_));
  if (!promises) return true;
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks,
                          PromisedPeaks(problem_, mapping_, taken.memory, taken.schedule, times));
  for (size_t worker = 0; worker < problem_.capacity.size(); ++worker) {
    const Bytes capacity = problem_.capacity[worker];
    if (capacity > Bytes(0) && peaks[worker] > capacity) return false;
  }
  return true;
}

}  // namespace siphon
