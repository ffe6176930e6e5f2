#include "launch/profile/fall_back.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

bool IsAt(const GroupChoice& choice, const ParkingPlace& place) {
  if (choice.placement != place.tier) return false;
  if (place.tier != Placement::kPeerSwap) return true;
  return std::any_of(choice.stripes.begin(), choice.stripes.end(), [&](const Stripe& stripe) {
    return stripe.lender == place.lender && stripe.bytes > Bytes(0);
  });
}

}  // namespace

bool ParksAt(const PlanInForce& plan, const LeftPlace& place) {
  if (plan.parking.empty()) return false;
  const auto& bytes = plan.parking[place.owner.value].bytes;
  const auto found = bytes.find(place.place);
  return found != bytes.end() && found->second > Bytes(0);
}

absl::StatusOr<FallBackResult> FallBack(PlanInForce before, const LeftPlace& left,
                                        WithoutSecondChoice without, const SecondStripes& stripes) {
  const std::vector<WorkerId> worker_of_stage = before.plan.schedule.worker_of_stage;
  bool recomputes = false;
  for (size_t stage = 0; stage < before.plan.memory.stages.size(); ++stage) {
    if (worker_of_stage[stage] != left.owner) continue;
    for (const PlannedGroup& planned : before.plan.memory.stages[stage].groups) {
      recomputes = recomputes || (IsAt(planned.choice, left.place) &&
                                  planned.choice.second_choice == Placement::kRecompute);
    }
  }
  const MemoryPlan memory = before.plan.memory;
  FallBackResult result;
  bool host_on_drive = false;
  const auto concerned = [&](StageId stage, const PlannedGroup& planned) {
    const GroupChoice& choice = planned.choice;
    if (worker_of_stage[stage.value] != left.owner) return false;
    // Not parked there, but where the host's own step has it.
    if (StepsOnHost(memory.stages[stage.value], planned)) return false;
    const bool beside = recomputes && choice.placement == left.place.tier &&
                        choice.second_choice == Placement::kRecompute;
    if (!IsAt(choice, left.place) && !beside) return false;
    const bool stays = StaysForHostStep(memory.stages[stage.value], planned);
    if (stays && without == WithoutSecondChoice::kStay) return false;
    host_on_drive = host_on_drive || stays;
    if (choice.second_choice == Placement::kKeep && without == WithoutSecondChoice::kStay) {
      return false;
    }
    ++result.moved[choice.second_choice];
    return true;
  };
  SIPHON_ASSIGN_OR_RETURN(result.now.plan,
                          TakeSecondChoices(std::move(before.plan), concerned, stripes));
  result.now.parking = std::move(before.parking);
  result.now.steps_on_drive = std::move(before.steps_on_drive);
  WorkerParking& parking = result.now.parking[left.owner.value];
  if (!result.moved.empty()) parking = MoveParking(parking, result.now.plan.memory);
  parking.host_on_drive = parking.host_on_drive || host_on_drive;
  return result;
}

absl::StatusOr<FallBackResult> StepOnDrive(PlanInForce before, WorkerId owner) {
  const std::vector<WorkerId> worker_of_stage = before.plan.schedule.worker_of_stage;
  const MemoryPlan memory = before.plan.memory;
  FallBackResult result;
  const auto concerned = [&](StageId stage, const PlannedGroup& planned) {
    const bool steps =
        worker_of_stage[stage.value] == owner && StepsOnHost(memory.stages[stage.value], planned);
    if (steps) ++result.moved[planned.choice.second_choice];
    return steps;
  };
  SIPHON_ASSIGN_OR_RETURN(result.now.plan, TakeSecondChoices(std::move(before.plan), concerned));
  if (result.moved.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no group of worker ", owner.value,
                     " steps on the host, so that the plan has no second choice for its steps"));
  }
  result.now.parking = std::move(before.parking);
  result.now.steps_on_drive = std::move(before.steps_on_drive);
  result.now.steps_on_drive.insert(owner);
  return result;
}

}  // namespace siphon
