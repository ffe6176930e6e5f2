#include "swap/swap_engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/status.h"
#include "swap/cut_copy.h"
#include "swap/memory_checksum.h"

namespace siphon {
namespace {

size_t Sum(const std::vector<size_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}

absl::Status OutOfOrder(const ParkedGroup& group, absl::string_view cannot,
                        absl::string_view where) {
  return absl::FailedPreconditionError(
      absl::StrCat(ToString(group), " cannot ", cannot, ": it is ", where));
}

absl::Status NotAsPlanned(const ParkedGroup& group, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(ToString(group), ": ", what));
}

WorkerParking::GroupPlace PlaceOf(const ParkedGroup& group) { return {group.stage, group.group}; }

bool KeepsSlot(const ParkedGroup& group) { return group.microbatch == kNoMicrobatch; }

}  // namespace

std::string ToString(const ParkedGroup& group) {
  std::string text = absl::StrCat("stage ", group.stage.value, ", group ", group.group.value);
  if (group.microbatch != kNoMicrobatch) {
    absl::StrAppend(&text, ", microbatch ", group.microbatch.value);
  }
  return text;
}

absl::string_view SwapEngine::TextOf(Where where) {
  switch (where) {
    case Where::kLeaving:
      return "on its way out";
    case Where::kAway:
      return "away";
    case Where::kComingBack:
      return "on its way in";
    case Where::kBack:
      break;
  }
  return "not away";
}

SwapEngine::SwapEngine(DeviceBackend* backend, WorkerParking parking,
                       std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check)
    : backend_(backend),
      slots_(std::move(parking), std::move(memory)),
      check_(check),
      host_copies_(backend, check == SwapCheck::kFull) {}

absl::Status SwapEngine::CheckRehousing(const WorkerParking& parking) const {
  for (const auto& [group, residence] : residences_) {
    if (residence.slot == nullptr) continue;
    if (residence.where != Where::kAway && residence.where != Where::kBack) {
      return OutOfOrder(group, "go to another place", TextOf(residence.where));
    }
    const auto found = parking.slots.find(PlaceOf(group));
    const size_t slots = found == parking.slots.end() ? 0 : found->second.size();
    if (slots == slots_.Count(PlaceOf(group))) continue;
    return OutOfOrder(group, "lose its place", TextOf(residence.where));
  }
  return absl::OkStatus();
}

// A slot keeps its number in its group, so that what is away (or kept there, for Drop) is found
// again, and what is free stays free.
absl::Status SwapEngine::Rehouse(WorkerParking parking,
                                 std::map<ParkingPlace, ParkingMemory> memory) {
  SIPHON_RETURN_IF_ERROR(CheckRehousing(parking));
  ParkingSlots before = std::exchange(slots_, ParkingSlots(std::move(parking), std::move(memory)));
  slots_.TakeOver(before);
  for (auto& [group, residence] : residences_) {
    if (residence.slot == nullptr) continue;
    const ParkingSlot* const to = slots_.Follower(PlaceOf(group), before, residence.slot);
    if (to->pieces != residence.slot->pieces) {
      const std::vector<SlotMemory> from = before.MemoryOf(*residence.slot);
      const bool from_drive = from.front().bytes.on_drive();
      const CopyEvent carried =
          backend_->StartCopy(from_drive ? CopyLane::kIn : CopyLane::kOut,
                              CutCopyAcross(from, slots_.MemoryOf(*to), Sum(residence.sizes)));
      SIPHON_RETURN_IF_ERROR(Annotate(backend_->Wait(carried), ToString(group)));
    }
    residence.slot = to;
  }
  return absl::OkStatus();
}

void SwapEngine::Abort() {
  const bool moves = std::any_of(residences_.begin(), residences_.end(), [](const auto& entry) {
    return entry.second.where == Where::kLeaving || entry.second.where == Where::kComingBack;
  });
  if (moves || host_copies_.moves()) backend_->Abort();
  host_copies_.Forget();
}

SwapEngine::Residence* SwapEngine::Find(const ParkedGroup& group) {
  const auto it = residences_.find(group);
  return it == residences_.end() ? nullptr : &it->second;
}

void SwapEngine::CountOut(const ParkingSlot& slot, size_t bytes) {
  Bytes left(static_cast<int64_t>(bytes));
  for (const ParkingPiece& piece : slot.pieces) {
    const Bytes there = std::min(left, piece.bytes);
    if (there > Bytes(0)) bytes_out_[piece.place.tier] += there;
    left -= there;
  }
}

const ParkingSlot* SwapEngine::TakeSlot(const ParkedGroup& group) {
  const Residence* const known = Find(group);
  if (known != nullptr && known->slot != nullptr) return known->slot;
  return slots_.Take(PlaceOf(group));
}

absl::Status SwapEngine::StartOut(const ParkedGroup& group,
                                  std::vector<absl::Span<const std::byte>> tensors) {
  const auto planned = slots_.all().find(PlaceOf(group));
  if (planned == slots_.all().end()) {
    return NotAsPlanned(group, "the plan does not park this group");
  }
  const Residence* const known = Find(group);
  if (known != nullptr && known->where != Where::kBack) {
    return OutOfOrder(group, "leave", TextOf(known->where));
  }
  const std::vector<ParkingSlot>& slots = planned->second;
  size_t bytes = 0;
  for (const absl::Span<const std::byte> tensor : tensors) bytes += tensor.size();
  const Bytes room = RoomOf(slots.front());
  if (static_cast<int64_t>(bytes) > room.value) {
    return NotAsPlanned(group, absl::StrCat(tensors.size(), " tensors of ", bytes,
                                            " bytes shall leave, planned are ", room.value));
  }
  const ParkingSlot* const slot = TakeSlot(group);
  if (slot == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        ToString(group), " cannot leave: no slot is free; the plan has the group away ",
        slots.size(), " times at once"));
  }
  Residence& residence = residences_[group];
  residence.slot = slot;
  residence.sizes.clear();
  for (const absl::Span<const std::byte> tensor : tensors) residence.sizes.push_back(tensor.size());
  if (check_ == SwapCheck::kFull) {
    absl::StatusOr<std::vector<uint64_t>> checksums = backend_->Checksums(tensors);
    if (!checksums.ok()) return Annotate(checksums.status(), ToString(group));
    residence.checksums = *std::move(checksums);
  }
  CountOut(*residence.slot, bytes);
  residence.event =
      backend_->StartCopy(CopyLane::kOut, CutCopyOut(tensors, slots_.MemoryOf(*residence.slot)));
  residence.where = Where::kLeaving;
  return absl::OkStatus();
}

absl::StatusOr<SwapEngine::Residence*> SwapEngine::Leaving(const ParkedGroup& group) {
  Residence* const residence = Find(group);
  const Where where = residence == nullptr ? Where::kBack : residence->where;
  if (where != Where::kLeaving && where != Where::kAway) {
    return OutOfOrder(group, "be waited for on its way out", TextOf(where));
  }
  return residence;
}

absl::StatusOr<bool> SwapEngine::IsOut(const ParkedGroup& group) {
  SIPHON_ASSIGN_OR_RETURN(Residence* const residence, Leaving(group));
  if (residence->where == Where::kAway) return true;
  const absl::StatusOr<bool> complete = backend_->Test(residence->event);
  if (!complete.ok()) return Annotate(complete.status(), ToString(group));
  if (*complete) residence->where = Where::kAway;
  return *complete;
}

absl::Status SwapEngine::WaitOut(const ParkedGroup& group) {
  SIPHON_ASSIGN_OR_RETURN(Residence* const residence, Leaving(group));
  if (residence->where == Where::kAway) return absl::OkStatus();
  const absl::Status complete = backend_->Wait(residence->event);
  if (!complete.ok()) return Annotate(complete, ToString(group));
  residence->where = Where::kAway;
  return absl::OkStatus();
}

absl::Status SwapEngine::StartIn(const ParkedGroup& group,
                                 std::vector<absl::Span<std::byte>> tensors) {
  Residence* const residence = Find(group);
  const Where where = residence == nullptr ? Where::kBack : residence->where;
  if (where != Where::kAway) return OutOfOrder(group, "come back", TextOf(where));
  const std::vector<size_t>& sizes = residence->sizes;
  if (tensors.size() != sizes.size()) {
    return NotAsPlanned(group, absl::StrCat(tensors.size(), " tensors shall come back, ",
                                            sizes.size(), " have left"));
  }
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    if (tensors[tensor].data() == nullptr || tensors[tensor].size() == sizes[tensor]) continue;
    return NotAsPlanned(
        group, absl::StrCat("tensor ", tensor, " shall come back into ", tensors[tensor].size(),
                            " bytes, ", sizes[tensor], " have left"));
  }
  residence->event = backend_->StartCopy(
      CopyLane::kIn, CutCopyIn(slots_.MemoryOf(*residence->slot), sizes, tensors));
  residence->back = std::move(tensors);
  residence->where = Where::kComingBack;
  return absl::OkStatus();
}

absl::StatusOr<SwapEngine::Residence*> SwapEngine::ComingBack(const ParkedGroup& group) {
  Residence* const residence = Find(group);
  if (residence == nullptr) return OutOfOrder(group, "be waited for on its way in", "not away");
  if (residence->where != Where::kComingBack && residence->where != Where::kBack) {
    return OutOfOrder(group, "be waited for on its way in", TextOf(residence->where));
  }
  return residence;
}

absl::StatusOr<bool> SwapEngine::IsIn(const ParkedGroup& group) {
  SIPHON_ASSIGN_OR_RETURN(Residence* const residence, ComingBack(group));
  if (residence->where == Where::kBack) return true;
  const absl::StatusOr<bool> complete = backend_->Test(residence->event);
  if (!complete.ok()) return Annotate(complete.status(), ToString(group));
  if (!*complete) return false;
  SIPHON_RETURN_IF_ERROR(FinishIn(group, *residence));
  return true;
}

absl::Status SwapEngine::WaitIn(const ParkedGroup& group) {
  SIPHON_ASSIGN_OR_RETURN(Residence* const residence, ComingBack(group));
  if (residence->where == Where::kBack) return absl::OkStatus();
  const absl::Status complete = backend_->Wait(residence->event);
  if (!complete.ok()) return Annotate(complete, ToString(group));
  return FinishIn(group, *residence);
}

absl::Status SwapEngine::FinishIn(const ParkedGroup& group, Residence& residence) {
  SIPHON_RETURN_IF_ERROR(CheckBack(group, residence));
  residence.where = Where::kBack;
  if (KeepsSlot(group)) return absl::OkStatus();
  slots_.GiveBack(PlaceOf(group), residence.slot);
  residence.slot = nullptr;
  return absl::OkStatus();
}

absl::Status SwapEngine::Drop(const ParkedGroup& group) {
  Residence* const residence = Find(group);
  const Where where = residence == nullptr ? Where::kBack : residence->where;
  if (where != Where::kBack) return OutOfOrder(group, "be dropped", TextOf(where));
  if (residence == nullptr || residence->slot == nullptr) {
    return OutOfOrder(group, "be dropped", "nowhere else");
  }
  residence->where = Where::kAway;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Span<std::byte>>> SwapEngine::OnHost(const ParkedGroup& group) {
  const Residence* const residence = Find(group);
  const Where where = residence == nullptr ? Where::kBack : residence->where;
  const bool stands = where == Where::kAway || where == Where::kBack;
  if (!stands || residence == nullptr || residence->slot == nullptr) {
    return OutOfOrder(group, "be worked on where it is parked", TextOf(where));
  }
  std::vector<absl::Span<std::byte>> tensors;
  const std::vector<ParkingPiece>& pieces = residence->slot->pieces;
  if (pieces.size() != 1 || pieces[0].place.tier != Placement::kHostSwap) return tensors;
  const SlotMemory memory = slots_.MemoryOf(*residence->slot)[0];
  std::byte* next = memory.bytes.data();
  for (const size_t size : residence->sizes) {
    tensors.emplace_back(next, size);
    next += size;
  }
  return tensors;
}

absl::Status SwapEngine::ChangedOnHost(const ParkedGroup& group) {
  SIPHON_ASSIGN_OR_RETURN(const auto tensors, OnHost(group));
  if (check_ != SwapCheck::kFull) return absl::OkStatus();
  std::vector<uint64_t>& checksums = Find(group)->checksums;
  checksums.clear();
  for (const absl::Span<std::byte> tensor : tensors) checksums.push_back(MemoryChecksum(tensor));
  return absl::OkStatus();
}

absl::Status SwapEngine::CheckBack(const ParkedGroup& group, const Residence& residence) const {
  if (check_ != SwapCheck::kFull) return absl::OkStatus();
  std::vector<absl::Span<const std::byte>> back;
  for (const absl::Span<std::byte> bytes : residence.back) {
    back.push_back(bytes.data() == nullptr ? absl::Span<const std::byte>() : bytes);
  }
  const absl::StatusOr<std::vector<uint64_t>> checksums = backend_->Checksums(back);
  if (!checksums.ok()) return Annotate(checksums.status(), ToString(group));
  for (size_t tensor = 0; tensor < back.size(); ++tensor) {
    const absl::Span<const std::byte> bytes = back[tensor];
    if (bytes.data() == nullptr || (*checksums)[tensor] == residence.checksums[tensor]) continue;
    return absl::DataLossError(absl::StrCat(ToString(group), ": tensor ", tensor, " (",
                                            bytes.size(), " bytes) came back changed"));
  }
  return absl::OkStatus();
}

bool SwapEngine::IsAway(const ParkedGroup& group) const {
  const auto it = residences_.find(group);
  return it != residences_.end() && it->second.where != Where::kBack;
}

std::map<Placement, Bytes> SwapEngine::TakeBytesOut() {
  if (const Bytes bytes = host_copies_.TakeBytesOut(); bytes > Bytes(0)) {
    bytes_out_[Placement::kHostSwap] += bytes;
  }
  return std::exchange(bytes_out_, {});
}

absl::Status SwapEngine::CheckNothingAway() const {
  if (check_ == SwapCheck::kOff) return absl::OkStatus();
  std::map<WorkerParking::GroupPlace, size_t> kept;  // slots
  for (const auto& [group, residence] : residences_) {
    if (KeepsSlot(group)) {
      kept[PlaceOf(group)] = residence.slot == nullptr ? 0 : 1;
    } else if (residence.where != Where::kBack) {
      return absl::InternalError(absl::StrCat("still away:\n", Table()));
    }
  }
  for (const auto& [group, slots] : slots_.all()) {
    const size_t free = slots_.CountFree(group);
    if (free + kept[group] == slots.size()) continue;
    return absl::InternalError(absl::StrCat("stage ", group.first.value, ", group ",
                                            group.second.value, ": nothing is away, but ", free,
                                            " of ", slots.size(), " slots are free"));
  }
  return absl::OkStatus();
}

std::string SwapEngine::Table() const {
  std::string table;
  for (const auto& [group, residence] : residences_) {
    if (residence.where == Where::kBack) continue;
    absl::StrAppend(&table, ToString(group), ": ", TextOf(residence.where), ", ",
                    residence.sizes.size(), " tensors, ", Sum(residence.sizes), " of ",
                    RoomOf(*residence.slot).value, " bytes: ", ToString(*residence.slot), "\n");
  }
  return table;
}

}  // namespace siphon
