#include "launch/run/follow/plan_follower.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/output/start_log.h"
#include "launch/plan_job/parking_region.h"
#include "launch/run/job/fit_memory.h"
#include "launch/run/job/name_of_place.h"
#include "pipeline/carried_state.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};
constexpr ParkingPlace kDrive{Placement::kNvmeSwap, DeviceId(0)};

// What each worker tells all others before the first step.
struct StartRecord {
  int32_t refuses = 0;     // to lend
  int32_t no_room_at = 0;  // the host or the drive, by PlaceNumber; 0: there is room
};

// Where a job's memory is kept whole, nobody asks.
NumaPlace PlaceOf(const PreparedJob& prepared, const WorkerSeat& seat) {
  if (prepared.plan.memory.stages.empty()) return NumaPlace();
  // What a topology calls a node need not be the system's number of it.
  return NumaPlace::OfThisThread(seat.device == nullptr ? std::nullopt : seat.device->numa_node);
}

// The topology that a run plans with may have more devices than its machine.
absl::Status CheckLendersAreThere(const std::vector<WorkerParking>& parking,
                                  const WorkerDevice* device) {
  if (device == nullptr || device->visible == 0) return absl::OkStatus();
  for (const ParkingRegion::Part& part : LayOutRegion(parking).parts) {
    if (device->index_of(part.lender) < device->visible) continue;
    return absl::ResourceExhaustedError(absl::StrCat("it parks tensors on device ",
                                                     part.lender.value, ", and there are ",
                                                     device->visible, " CUDA devices"));
  }
  return absl::OkStatus();
}

// A refusal is for second choices; anything else ends the run.
absl::Status UnlessRefused(const absl::Status& status) {
  return IsRefusal(status) ? absl::OkStatus() : status;
}

}  // namespace

PlanFollower::PlanFollower(const PreparedJob& prepared, const WorkerSeat& seat, SeatMemory& memory,
                           Coordinator& coordinator)
    : prepared_(prepared),
      seat_(seat),
      host_(HostCapacityOf(prepared), HostBooksIn(prepared, seat.lent)),
      numa_(PlaceOf(prepared, seat)),
      coordinator_(coordinator),
      region_(RegionOf(prepared, seat.lent)),
      evaluation_(prepared.plan.evaluation),
      second_(prepared.second.stripes),
      now_{{prepared.plan.memory, prepared.plan.training}, prepared.parking},
      lent_(prepared, seat, memory, numa_, coordinator),
      second_choices_(static_cast<size_t>(WorkerCount(prepared.plan.training))) {
  ShareOwn(region_);
}

// What this worker has by itself, of any plan.
void PlanFollower::ShareOwn(RoomRegion& region) {
  region.host = &host_;
  region.numa = &numa_;
  region.device = seat_.device;
  region.lending = lent_.on_device();
}

absl::Status PlanFollower::MakeRoom() {
  bool steps = false;
  for (const StageId stage : StagesSteppedOnHost(now_.plan.memory)) {
    steps = steps || now_.plan.schedule.worker_of_stage[stage.value] == seat_.me;
  }
  if (now_.parking.empty()) return absl::OkStatus();
  if (now_.parking[seat_.me.value].bytes.empty() && !steps) return absl::OkStatus();
  const WorkerParking& parking = now_.parking[seat_.me.value];
  // It is made when its groups have gone their second way.
  if (lent_.Lacks(parking)) return absl::OkStatus();
  const bool to_host = parking.bytes.contains(kHost);
  if (to_host && !parking.host_on_drive && seat_.at_phase) {
    SIPHON_RETURN_IF_ERROR(seat_.at_phase(kHostMemoryPhase));
  }
  const bool to_drive = parking.bytes.contains(kDrive) || (to_host && parking.host_on_drive);
  if (to_drive && seat_.at_phase) {
    SIPHON_RETURN_IF_ERROR(RefusedByDrive(seat_.at_phase(kDrivePhase)));
  }
  SIPHON_ASSIGN_OR_RETURN(room_,
                          ParkingRoom::Make(prepared_, seat_.me, parking, region_, seat_.at_chunk));
  return absl::OkStatus();
}

absl::Status PlanFollower::TakeHostMemory(Bytes bytes) {
  host_steps_ = bytes;
  return TakeHostMemoryFor(/*next_step=*/1);
}

absl::Status PlanFollower::MapHostMemory() {
  if (host_steps_ == Bytes(0)) return absl::OkStatus();
  SIPHON_CHECK(room_ != nullptr, "who has optimizer steps on the host has a room");
  const bool on_drive = now_.steps_on_drive.contains(seat_.me);
  if (seat_.at_phase) {
    const absl::Status phase = seat_.at_phase(on_drive ? kDrivePhase : kHostMemoryPhase);
    SIPHON_RETURN_IF_ERROR(on_drive ? RefusedByDrive(phase) : phase);
  }
  SIPHON_ASSIGN_OR_RETURN(
      host_memory_,
      on_drive ? MakeHostRoomOnDrive(prepared_, seat_.me, host_steps_, &numa_)
               : HostMapping::Make(host_steps_, &host_, kHostSteps, &numa_, LocksOf(seat_.device)));
  return absl::OkStatus();
}

absl::Status PlanFollower::TakeHostMemoryFor(int64_t next_step) {
  if (StagesSteppedOnHost(now_.plan.memory).empty()) return absl::OkStatus();
  const absl::Status mapped = MapHostMemory();
  const bool refused = absl::IsResourceExhausted(mapped) && RefusingTier(mapped) == kHost.tier;
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(refused ? absl::OkStatus() : mapped));
  if (refused) LogWarning(absl::StrCat("worker ", seat_.me.value, ": ", mapped.message()));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<int32_t> all,
                          coordinator_.Gather(static_cast<int32_t>(refused)));
  for (size_t worker = 0; worker < all.size(); ++worker) {
    if (all[worker] == 0) continue;
    const WorkerId owner(static_cast<int>(worker));
    absl::StatusOr<FallBackResult> fallen = StepOnDrive(now_, owner);
    if (!fallen.ok()) {
      return NoSecondChoice(fallen.status(), owner == seat_.me ? mapped : absl::OkStatus());
    }
    now_ = std::move(fallen->now);
    NoteMoved({{owner, kHost}, owner}, fallen->moved, next_step);
  }
  if (absl::c_linear_search(all, 1)) {
    return coordinator_.Agree(refused ? MapHostMemory() : absl::OkStatus());
  }
  return absl::OkStatus();
}

// Collective calls are the same on all workers only if all know of the same failures: whoever has
// met one says so first.
absl::Status PlanFollower::TakeRoom() { return TakeRoomFor(/*next_step=*/1); }

absl::Status PlanFollower::TakeRoomFor(int64_t next_step) {
  if (seat_.host_is_full && seat_.host_is_full()) FillHost();
  SIPHON_RETURN_IF_ERROR(lent_.Take(region_, now_.parking));
  room_refusal_ = MakeRoom();
  absl::Status failed = UnlessRefused(lent_.refusal());
  failed.Update(UnlessRefused(room_refusal_));
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(failed));
  StartRecord mine{.refuses = !lent_.refusal().ok()};
  if (!room_refusal_.ok()) {
    LogWarning(absl::StrCat("worker ", seat_.me.value, ": ", room_refusal_.message()));
    mine.no_room_at = PlaceNumber({RefusingTier(room_refusal_), DeviceId(0)});
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<StartRecord> records, coordinator_.Gather(mine));
  std::vector<Leaving> all;
  for (size_t worker = 0; worker < records.size(); ++worker) {
    const WorkerId says(static_cast<int>(worker));
    if (records[worker].refuses != 0) {
      const std::vector<Leaving> owners = OwnersOf(says);
      all.insert(all.end(), owners.begin(), owners.end());
    }
    if (records[worker].no_room_at != 0) {
      all.push_back({{says, PlaceOfNumber(records[worker].no_room_at)}, says});
    }
  }
  if (lent_.on_device() != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Leaving> unreached, OutOfReach());
    all.insert(all.end(), unreached.begin(), unreached.end());
  }
  return Leave(all, next_step);
}

absl::StatusOr<std::vector<Leaving>> PlanFollower::OutOfReach() const {
  std::string mine;  // the places' numbers, in words
  for (const auto& [lender, why] : lent_.OutOfReach()) {
    LogWarning(absl::StrCat("worker ", seat_.me.value, ": ", why));
    absl::StrAppend(&mine, PlaceNumber({Placement::kPeerSwap, lender}), " ");
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> texts, coordinator_.GatherText(mine));
  std::vector<Leaving> all;
  for (size_t worker = 0; worker < texts.size(); ++worker) {
    const WorkerId says(static_cast<int>(worker));
    for (const absl::string_view word : absl::StrSplit(texts[worker], ' ', absl::SkipEmpty())) {
      int32_t number = 0;
      SIPHON_CHECK(absl::SimpleAtoi(word, &number), "a worker has sent numbers");
      all.push_back({{says, PlaceOfNumber(number)}, says});
    }
  }
  return all;
}

void PlanFollower::FillHost() {
  for (Bytes part = host_.capacity(); part > Bytes(0); part = Bytes(part.value / 2)) {
    while (host_.Take(part, kCarried)) {
    }
  }
}

bool PlanFollower::AsPlanned() const {
  return absl::c_all_of(second_choices_, [](int64_t groups) { return groups == 0; });
}

absl::StatusOr<PlanFollower::NextPlan> PlanFollower::Prepare(const PlanText& plan) {
  NextPlan next{.plan = {{plan.memory, plan.training}, {}}, .evaluation = plan.evaluation};
  absl::StatusOr<std::vector<WorkerParking>> parking = LayOutParking(plan.memory, plan.training);
  if (parking.ok()) {
    const absl::Status there = CheckLendersAreThere(*parking, seat_.device);
    if (!there.ok()) parking = there;
  }
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(parking.status()));
  if (ParksAnything(*parking) || !StagesSteppedOnHost(plan.memory).empty())
    next.plan.parking = *std::move(parking);
  SecondLending second = SecondLendingOf(plan, next.plan.parking);
  next.second = std::move(second.stripes);
  next.region = {std::move(second.at_most), region_.lent, region_.ways};
  ShareOwn(next.region);
  if (lent_.on_device() != nullptr) return next;  // devices lend what each plan takes
  const Bytes needed = LayOutRegion(next.region.parking).bytes;
  if (needed <= Bytes(static_cast<int64_t>(region_.lent.size()))) return next;
  absl::StatusOr<absl::Span<std::byte>> more =
      absl::ResourceExhaustedError("workers on several hosts do not lend to each other");
  if (seat_.more_shared) more = seat_.more_shared(needed);
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(more.status()));
  next.region.lent = *more;
  return next;
}

absl::StatusOr<PlanInForceIs> PlanFollower::MoveTo(NextPlan next, int64_t next_step) {
  SIPHON_RETURN_IF_ERROR(LeaveRoom());
  NextPlan before{std::exchange(now_, std::move(next.plan)),
                  std::exchange(evaluation_, std::move(next.evaluation)),
                  std::exchange(region_, std::move(next.region)),
                  std::exchange(second_, std::move(next.second)), host_steps_};
  watch_ = LinkWatch();
  link_use_.clear();
  const auto take_room = [&](Bytes host_steps) -> absl::Status {
    SIPHON_RETURN_IF_ERROR(TakeRoomFor(next_step));
    host_steps_ = host_steps;
    return TakeHostMemoryFor(next_step);
  };
  const absl::Status taken = take_room(next.host_steps);
  if (taken.ok()) return PlanInForceIs::kNext;
  if (!absl::IsResourceExhausted(taken)) return taken;
  notes_ = {absl::StrCat("the plan stays after all: ", taken.message())};
  SIPHON_RETURN_IF_ERROR(LeaveRoom());
  now_ = std::move(before.plan);
  evaluation_ = std::move(before.evaluation);
  region_ = std::move(before.region);
  second_ = std::move(before.second);
  absl::c_fill(second_choices_, 0);
  SIPHON_RETURN_IF_ERROR(take_room(before.host_steps));
  return PlanInForceIs::kBefore;
}

absl::Status PlanFollower::Close() {
  room_.reset();
  return lent_.GiveBack();
}

absl::Status PlanFollower::LeaveRoom() {
  room_.reset();
  host_memory_ = HostMapping();
  return lent_.GiveBack();
}

std::vector<Leaving> PlanFollower::OwnersOf(WorkerId lender) const {
  std::vector<Leaving> owners;
  const ParkingPlace place{Placement::kPeerSwap, DeviceOfWorker(prepared_, lender)};
  for (size_t owner = 0; owner < now_.parking.size(); ++owner) {
    const LeftPlace left{WorkerId(static_cast<int>(owner)), place};
    if (ParksAt(now_, left)) owners.push_back({left, lender});
  }
  return owners;
}

void PlanFollower::BeforeStep() {
  if (room_ == nullptr || !seat_.slowness) return;
  for (const auto& [place, bytes] : now_.parking[seat_.me.value].bytes) {
    const double slowness = seat_.slowness(NameOfPlace(prepared_.plan_text.mapping, place));
    if (slowness > 1) room_->SlowDown(place, slowness);
  }
}

absl::Status PlanFollower::Report(Nanos step, StepRecord& mine) {
  mine.second_choices = second_choices_[static_cast<size_t>(seat_.me.value)];
  SIPHON_RETURN_IF_ERROR(lent_.AskAgain());
  mine.refuses = lent_.refusal().ok() ? 0 : 1;
  if (room_ == nullptr) return absl::OkStatus();
  link_use_ = room_->TakeLinkUse();
  const std::optional<SlowLink> slow = watch_.Note(link_use_, step);
  if (!slow.has_value() || !ParksAt(now_, {seat_.me, slow->place})) return absl::OkStatus();
  mine.slow_place = PlaceNumber(slow->place);
  mine.slow_factor = slow->factor;
  return absl::OkStatus();
}

absl::Status PlanFollower::Follow(const std::vector<StepRecord>& records, int64_t next_step) {
  std::vector<Leaving> all;
  std::set<WorkerId> refusing;
  for (size_t worker = 0; worker < records.size(); ++worker) {
    const WorkerId says(static_cast<int>(worker));
    const StepRecord& record = records[worker];
    if (record.refuses != 0) {
      refusing.insert(says);
      const std::vector<Leaving> owners = OwnersOf(says);
      all.insert(all.end(), owners.begin(), owners.end());
    }
    if (record.slow_place != 0) {
      all.push_back({{says, PlaceOfNumber(record.slow_place)}, says, record.slow_factor});
    }
  }
  SIPHON_RETURN_IF_ERROR(Leave(all, next_step));
  return lent_.LeaveRefusing(refusing, now_.parking);
}

absl::Status PlanFollower::WhyRefused(const Leaving& leaving) const {
  if (leaving.left.place.tier != Placement::kPeerSwap) return room_refusal_;
  if (leaving.left.owner != seat_.me) return lent_.refusal();
  return absl::ResourceExhaustedError(lent_.OutOfReach()[leaving.left.place.lender]);
}

// On every worker; who does not give the memory tells why (`mine`; OK on the others).
absl::Status PlanFollower::NoSecondChoice(const absl::Status& fallen, const absl::Status& mine) {
  absl::Status why;
  if (!mine.ok()) {
    why = absl::Status(mine.code(), absl::StrCat(mine.message(), "; ", fallen.message()));
  }
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(why));
  return fallen;
}

void PlanFollower::NoteMoved(const Leaving& leaving, const std::map<Placement, int>& moved,
                             int64_t next_step) {
  for (const auto& [to, groups] : moved) {
    second_choices_[static_cast<size_t>(leaving.left.owner.value)] += groups;
  }
  notes_.push_back(absl::StrCat(ReasonOf(leaving, prepared_.plan_text.mapping), ": ",
                                WhereGroupsGo(moved), " from step ", next_step, " on"));
}

absl::Status PlanFollower::Leave(const std::vector<Leaving>& all, int64_t next_step) {
  bool changed = false;
  const std::vector<WorkerParking> before = now_.parking;
  for (const Leaving& leaving : all) {
    if (!ParksAt(now_, leaving.left)) continue;  // with what another one has taken along
    const bool slow = leaving.slow_factor > 0;
    absl::StatusOr<FallBackResult> fallen =
        FallBack(now_, leaving.left,
                 slow ? WithoutSecondChoice::kStay : WithoutSecondChoice::kRefuse, second_);
    if (!fallen.ok()) {
      return NoSecondChoice(fallen.status(),
                            leaving.says == seat_.me ? WhyRefused(leaving) : absl::OkStatus());
    }
    if (fallen->moved.empty()) {
      notes_.push_back(absl::StrCat(ReasonOf(leaving, prepared_.plan_text.mapping),
                                    ", and what goes there has no second choice"));
      continue;
    }
    changed = true;
    now_ = std::move(fallen->now);
    NoteMoved(leaving, fallen->moved, next_step);
  }
  if (!changed) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(lent_.TakeMore(now_.parking)));
  lent_.Touch(before, now_.parking);
  // Everybody moves into memory that its lender has touched.
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(absl::OkStatus()));
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(MoveRoom()));
  lent_.GiveUnused(now_.parking);  // of what nobody uses any more
  return absl::OkStatus();
}

absl::Status PlanFollower::MoveRoom() {
  if (room_ == nullptr) return MakeRoom();
  return room_->Rehouse(now_.parking[seat_.me.value]);
}

}  // namespace siphon
