#include "swap/parking_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/round_up.h"
#include "planner/status.h"

namespace siphon {
namespace {

using GroupPlace = WorkerParking::GroupPlace;

// Drives are written in blocks of so much: no two slots share one (kNvmeBlock).
constexpr Bytes kDriveBlock{4096};

Bytes SlotBytes(Bytes bytes, Placement tier) {
  return RoundUp(bytes, tier == Placement::kNvmeSwap ? kDriveBlock : kCacheLine);
}

// Workers hold one version of their weights, and stripes are the whole of a group.
absl::Status CheckGroup(const PlannedGroup& planned, int stage, int group) {
  if (!IsSwap(planned.choice.placement)) return absl::OkStatus();
  const auto name = [&] { return absl::StrCat("stage ", stage, ", group ", group); };
  if (planned.group.kind == GroupKind::kWeightVersions) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), " is of ", GroupKindName(planned.group.kind), " with ",
                     PlacementName(planned.choice.placement), ": they cannot be parked"));
  }
  if (planned.choice.placement != Placement::kPeerSwap) return absl::OkStatus();
  Bytes striped;
  for (const Stripe& stripe : planned.choice.stripes) striped += stripe.bytes;
  if (striped == planned.group.bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name(), " has ", planned.group.bytes.value,
                                                 " bytes, its stripes ", striped.value));
}

absl::Status CheckGroups(const MemoryPlan& plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const std::vector<PlannedGroup>& groups = plan.stages[stage].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      SIPHON_RETURN_IF_ERROR(
          CheckGroup(groups[group], static_cast<int>(stage), static_cast<int>(group)));
    }
  }
  return absl::OkStatus();
}

bool MovesTensors(const Action& action) {
  switch (action.kind) {
    case ActionKind::kSwapOut:
    case ActionKind::kSwapOutEnd:
    case ActionKind::kSwapIn:
    case ActionKind::kSwapInEnd:
      return true;
    case ActionKind::kDrop:  // what belongs to no microbatch has a copy elsewhere
      return action.microbatch == kNoMicrobatch;
    default:
      return false;
  }
}

absl::StatusOr<const PlannedGroup*> GroupOf(const MemoryPlan& plan, const Action& action) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(action), ": the plan ", what));
  };
  if (action.group == kWholeStage) return wrong("parks groups, not whole stages");
  const size_t stage = static_cast<size_t>(action.stage.value);
  const size_t group = static_cast<size_t>(action.group.value);
  if (stage >= plan.stages.size() || group >= plan.stages[stage].groups.size()) {
    return wrong("has no such group");
  }
  const PlannedGroup& planned = plan.stages[stage].groups[group];
  if (!IsSwap(planned.choice.placement)) {
    return wrong(absl::StrCat("does not swap it: ", PlacementName(planned.choice.placement)));
  }
  return &planned;
}

// How many times each group of one worker is away at once, at most: those that belong to no
// microbatch once.
absl::StatusOr<std::map<GroupPlace, int>> MostAway(const MemoryPlan& plan,
                                                   const std::vector<Action>& program) {
  std::map<GroupPlace, std::set<MicrobatchId>> away;
  std::map<GroupPlace, int> most;
  for (const Action& action : program) {
    if (MovesTensors(action)) {
      SIPHON_RETURN_IF_ERROR(GroupOf(plan, action).status());
      const GroupPlace place(action.stage, action.group);
      if (action.microbatch == kNoMicrobatch) {
        most[place] = 1;
        continue;
      }
      std::set<MicrobatchId>& of_group = away[place];
      if (action.kind == ActionKind::kSwapInEnd) of_group.erase(action.microbatch);
      if (action.kind == ActionKind::kSwapOut) of_group.insert(action.microbatch);
      most[place] = std::max(most[place], static_cast<int>(of_group.size()));
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
      // It has all the activations back that its forward has sent away.
      const auto begin = away.lower_bound(GroupPlace(action.stage, GroupId(0)));
      for (auto it = begin; it != away.end() && it->first.first == action.stage; ++it) {
        it->second.erase(action.microbatch);
      }
    }
  }
  return most;
}

// The places of a group's tensors, and how many bytes of them go there.
std::vector<std::pair<ParkingPlace, Bytes>> SharesOf(const PlannedGroup& planned) {
  const Placement tier = planned.choice.placement;
  std::vector<std::pair<ParkingPlace, Bytes>> shares;
  if (tier != Placement::kPeerSwap) {
    shares.push_back({{.tier = tier}, planned.group.bytes});
  } else {
    for (const Stripe& stripe : planned.choice.stripes) {
      shares.push_back({{.tier = tier, .lender = stripe.lender}, stripe.bytes});
    }
  }
  std::erase_if(shares, [](const auto& share) { return share.second == Bytes(0); });
  return shares;
}

const PlannedGroup& PlannedAt(const MemoryPlan& plan, const GroupPlace& place) {
  return plan.stages[place.first.value].groups[place.second.value];
}

void AddSlots(const GroupPlace& place, size_t count, const PlannedGroup& planned,
              WorkerParking& parking) {
  std::vector<ParkingSlot>& slots = parking.slots[place];
  slots.resize(count);
  for (ParkingSlot& slot : slots) {
    for (const auto& [where, bytes] : SharesOf(planned)) {
      Bytes& used = parking.bytes[where];
      slot.pieces.push_back({where, used, bytes});
      used += SlotBytes(bytes, where.tier);
    }
  }
}

WorkerParking LayOut(const MemoryPlan& plan, const std::map<GroupPlace, int>& most_away) {
  WorkerParking parking;
  for (const auto& [place, count] : most_away) {
    AddSlots(place, static_cast<size_t>(count), PlannedAt(plan, place), parking);
  }
  return parking;
}

// Whether slots of the group are where the plan has it.
bool IsPlannedThere(const std::vector<ParkingSlot>& slots, const PlannedGroup& planned) {
  const auto shares = SharesOf(planned);
  const auto is_share = [](const ParkingPiece& piece, const auto& share) {
    return piece.place == share.first && piece.bytes == share.second;
  };
  return std::all_of(slots.begin(), slots.end(), [&](const ParkingSlot& slot) {
    return std::equal(slot.pieces.begin(), slot.pieces.end(), shares.begin(), shares.end(),
                      is_share);
  });
}

Bytes SumAt(const std::vector<WorkerParking>& parking, const ParkingPlace& place) {
  Bytes sum;
  for (const WorkerParking& worker : parking) {
    const auto it = worker.bytes.find(place);
    if (it != worker.bytes.end()) sum += it->second;
  }
  return sum;
}

}  // namespace

absl::StatusOr<std::vector<WorkerParking>> LayOutParking(const MemoryPlan& plan,
                                                         const Schedule& schedule) {
  SIPHON_RETURN_IF_ERROR(CheckGroups(plan));
  std::vector<WorkerParking> parking;
  for (const std::vector<Action>& program : schedule.programs) {
    SIPHON_ASSIGN_OR_RETURN(const auto most_away, MostAway(plan, program));
    parking.push_back(LayOut(plan, most_away));
  }
  return parking;
}

WorkerParking MoveParking(const WorkerParking& parking, const MemoryPlan& plan) {
  WorkerParking moved{.host_on_drive = parking.host_on_drive};
  for (const auto& [place, slots] : parking.slots) {
    const PlannedGroup& planned = PlannedAt(plan, place);
    if (!IsSwap(planned.choice.placement) || !IsPlannedThere(slots, planned)) continue;
    moved.slots[place] = slots;
    for (const ParkingSlot& slot : slots) {
      for (const ParkingPiece& piece : slot.pieces) {
        moved.bytes[piece.place] = parking.bytes.at(piece.place);
      }
    }
  }
  for (const auto& [place, slots] : parking.slots) {
    const PlannedGroup& planned = PlannedAt(plan, place);
    if (!IsSwap(planned.choice.placement) || moved.slots.contains(place)) continue;
    // Behind what is there, if anything is.
    AddSlots(place, slots.size(), planned, moved);
  }
  return moved;
}

Bytes LentBytes(const std::vector<WorkerParking>& parking, DeviceId lender) {
  return SumAt(parking, {.tier = Placement::kPeerSwap, .lender = lender});
}

Bytes HostBytes(const std::vector<WorkerParking>& parking) {
  return SumAt(parking, {.tier = Placement::kHostSwap});
}

Bytes DriveBytes(const std::vector<WorkerParking>& parking) {
  return SumAt(parking, {.tier = Placement::kNvmeSwap});
}

}  // namespace siphon
