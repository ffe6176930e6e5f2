#ifndef SIPHON_TESTS_SWAP_PARKING_LOT_H_
#define SIPHON_TESTS_SWAP_PARKING_LOT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "swap/parking_layout.h"
#include "swap/swap_engine.h"

namespace siphon {

// Memory of the host for all places of a layout; each place has a link of its own, in the order of
// places. Requires: no place is on a drive.
class ParkingLot {
 public:
  explicit ParkingLot(const WorkerParking& parking) {
    for (const auto& [place, bytes] : parking.bytes) {
      memory_[place].resize(static_cast<size_t>(bytes.value));
    }
  }
  std::map<ParkingPlace, ParkingMemory> Memory() {
    std::map<ParkingPlace, ParkingMemory> memory;
    for (auto& [place, bytes] : memory_) {
      memory[place] = {absl::MakeSpan(bytes), CopyLinkId(static_cast<int>(memory.size()))};
    }
    return memory;
  }
  std::vector<std::byte>& At(const ParkingPlace& place) { return memory_.at(place); }
  int Links() const { return static_cast<int>(memory_.size()); }

 private:
  std::map<ParkingPlace, std::vector<std::byte>> memory_;
};

// `slots` slots of `pieces` for group `group` of stage 0, as LayOutParking lays them out.
inline void AddSlots(WorkerParking& parking, int group, int slots,
                     const std::vector<std::pair<ParkingPlace, int64_t>>& pieces) {
  for (int slot = 0; slot < slots; ++slot) {
    ParkingSlot& added = parking.slots[{StageId(0), GroupId(group)}].emplace_back();
    for (const auto& [place, bytes] : pieces) {
      Bytes& used = parking.bytes[place];
      added.pieces.push_back({place, used, Bytes(bytes)});
      used += Bytes((bytes + 63) / 64 * 64);
    }
  }
}

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_PARKING_LOT_H_
