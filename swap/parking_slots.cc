#include "swap/parking_slots.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::string ToString(const ParkingPlace& place) {
  if (place.tier == Placement::kPeerSwap) return absl::StrCat("device ", place.lender.value);
  return place.tier == Placement::kHostSwap ? "host" : "drive";
}

}  // namespace

Bytes RoomOf(const ParkingSlot& slot) {
  Bytes room;
  for (const ParkingPiece& piece : slot.pieces) room += piece.bytes;
  return room;
}

std::string ToString(const ParkingSlot& slot) {
  const auto append_piece = [](std::string* text, const ParkingPiece& piece) {
    absl::StrAppend(text, ToString(piece.place), " [", piece.offset.value, ", ",
                    (piece.offset + piece.bytes).value, ")");
  };
  return absl::StrJoin(slot.pieces, ", ", append_piece);
}

ParkingSlots::ParkingSlots(WorkerParking parking, std::map<ParkingPlace, ParkingMemory> memory)
    : parking_(std::move(parking)), memory_(std::move(memory)) {
  for (const auto& [place, bytes] : parking_.bytes) {
    const auto it = memory_.find(place);
    SIPHON_CHECK(it != memory_.end(), "every place of the layout has memory");
    SIPHON_CHECK(static_cast<int64_t>(it->second.bytes.size()) >= bytes.value,
                 "a place has as much memory as the layout says");
  }
  for (const auto& [group, slots] : parking_.slots) {
    std::vector<const ParkingSlot*>& free = free_[group];
    for (size_t slot = slots.size(); slot > 0; --slot) free.push_back(&slots[slot - 1]);
  }
}

size_t ParkingSlots::Count(const GroupPlace& group) const {
  const auto slots = parking_.slots.find(group);
  return slots == parking_.slots.end() ? 0 : slots->second.size();
}

const ParkingSlot* ParkingSlots::Take(const GroupPlace& group) {
  std::vector<const ParkingSlot*>& free = free_.at(group);
  if (free.empty()) return nullptr;
  const ParkingSlot* const slot = free.back();
  free.pop_back();
  return slot;
}

void ParkingSlots::GiveBack(const GroupPlace& group, const ParkingSlot* slot) {
  free_.at(group).push_back(slot);
}

std::vector<SlotMemory> ParkingSlots::MemoryOf(const ParkingSlot& slot) const {
  std::vector<SlotMemory> pieces;
  pieces.reserve(slot.pieces.size());
  for (const ParkingPiece& piece : slot.pieces) {
    const ParkingMemory& memory = memory_.at(piece.place);
    pieces.push_back({memory.bytes.subspan(static_cast<size_t>(piece.offset.value),
                                           static_cast<size_t>(piece.bytes.value)),
                      memory.link});
  }
  return pieces;
}

void ParkingSlots::TakeOver(ParkingSlots& before) {
  for (auto& [place, memory] : before.memory_) {
    const auto here = memory_.find(place);
    if (here != memory_.end()) memory = here->second;
  }
  for (auto& [group, free] : free_) {
    if (before.Count(group) != Count(group)) continue;
    free.clear();
    for (const ParkingSlot* const slot : before.free_.at(group)) {
      free.push_back(Follower(group, before, slot));
    }
  }
}

const ParkingSlot* ParkingSlots::Follower(const GroupPlace& group, const ParkingSlots& before,
                                          const ParkingSlot* slot) const {
  const auto number = slot - before.parking_.slots.at(group).data();
  return &parking_.slots.at(group)[static_cast<size_t>(number)];
}

}  // namespace siphon
