#ifndef SIPHON_SWAP_PARKING_SLOTS_H_
#define SIPHON_SWAP_PARKING_SLOTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "planner/units.h"
#include "swap/cut_copy.h"
#include "swap/device/device_backend.h"
#include "swap/parking_layout.h"

namespace siphon {

// What this worker may use of one place, in memory or on a drive, and the link that leads there.
struct ParkingMemory {
  CopySide<std::byte> bytes;
  CopyLinkId link;
};

// A worker's slots: which are free, and the memory that each one is. A pointer to a slot is good
// as long as they are, also when they are moved.
//
// Thread-safety: one thread.
class ParkingSlots {
 public:
  using GroupPlace = WorkerParking::GroupPlace;

  // All free. The memory outlives them. Requires: memory for every place of the layout, as large as
  // it says.
  ParkingSlots(WorkerParking parking, std::map<ParkingPlace, ParkingMemory> memory);
  ParkingSlots(ParkingSlots&&) = default;
  ParkingSlots& operator=(ParkingSlots&&) = default;

  // All slots of the plan, by group.
  const std::map<GroupPlace, std::vector<ParkingSlot>>& all() const { return parking_.slots; }
  // Of a group, free and taken; 0 where the plan does not park it.
  size_t Count(const GroupPlace& group) const;
  // Requires: the plan parks the group.
  size_t CountFree(const GroupPlace& group) const { return free_.at(group).size(); }
  // The slot given back last, at first the first one. Null: none is free. Requires: as above.
  const ParkingSlot* Take(const GroupPlace& group);
  // Requires: taken of this group.
  void GiveBack(const GroupPlace& group, const ParkingSlot* slot);

  // Its pieces, in order.
  std::vector<SlotMemory> MemoryOf(const ParkingSlot& slot) const;

  // These, all free until now, come after `before` in the same run: of a group with as many slots
  // there, taken is what was taken, by number. What `before` has at places that both have lies in
  // this memory from now on.
  void TakeOver(ParkingSlots& before);
  // The slot here that has the number of `slot` in `before`. Requires: the group has as many slots
  // there.
  const ParkingSlot* Follower(const GroupPlace& group, const ParkingSlots& before,
                              const ParkingSlot* slot) const;

 private:
  WorkerParking parking_;
  std::map<ParkingPlace, ParkingMemory> memory_;
  std::map<GroupPlace, std::vector<const ParkingSlot*>> free_;  // the next one to be taken last
};

// Bytes of all its pieces.
Bytes RoomOf(const ParkingSlot& slot);
// "device 3 [0, 100), host [64, 92)"
std::string ToString(const ParkingSlot& slot);

}  // namespace siphon

#endif  // SIPHON_SWAP_PARKING_SLOTS_H_
