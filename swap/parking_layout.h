#ifndef SIPHON_SWAP_PARKING_LAYOUT_H_
#define SIPHON_SWAP_PARKING_LAYOUT_H_

#include <compare>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/units.h"

namespace siphon {

// Where tensors are parked: on a lender's device, in host memory or on the host's drives.
struct ParkingPlace {
  Placement tier = Placement::kHostSwap;  // kPeerSwap, kHostSwap or kNvmeSwap
  DeviceId lender;                        // kPeerSwap only; else 0
  friend auto operator<=>(const ParkingPlace&, const ParkingPlace&) = default;
};

// A piece of a slot: bytes [offset, offset + bytes) of what its owner has at the place.
struct ParkingPiece {
  ParkingPlace place;
  Bytes offset;
  Bytes bytes;
  friend bool operator==(const ParkingPiece&, const ParkingPiece&) = default;
};

// Room for the tensors of one group once, one behind the other without gaps, cut at any byte.
struct ParkingSlot {
  std::vector<ParkingPiece> pieces;  // in order; they add up to the group's bytes
  friend bool operator==(const ParkingSlot&, const ParkingSlot&) = default;
};

// Where one worker parks: fixed before the first step, so that nobody asks anybody at run time.
struct WorkerParking {
  using GroupPlace = std::pair<StageId, GroupId>;
  // As many slots a group as its tensors are away at once by the worker's program.
  std::map<GroupPlace, std::vector<ParkingSlot>> slots;
  // In all at each place, in granules: 64 bytes, on drives 4096.
  std::map<ParkingPlace, Bytes> bytes;
  // Its room with the host is a file on its drive, mapped into memory: by a second choice.
  bool host_on_drive = false;
  friend bool operator==(const WorkerParking&, const WorkerParking&) = default;
};

// Pure. Every worker comes to the same layout. What is away of a group at once: between SWAP_OUT of
// a microbatch and the action that has it back (SWAP_IN_END, or the B, I, F or W that needs it), in
// the order of the worker's program; parameters, gradients and optimizer state once, always. Slots
// begin at granules of their places.
//
// [worker of one replica]. Errors: FailedPrecondition for a group of weight versions,
// InvalidArgument for an action whose group the plan does not have or does not swap.
absl::StatusOr<std::vector<WorkerParking>> LayOutParking(const MemoryPlan& plan,
                                                         const Schedule& schedule);

// The layout of a worker whose groups go elsewhere in the middle of a run: those that `plan` parks
// where they were keep their slots, those that it parks elsewhere get as many slots there, behind
// what is there already; the others lose theirs. A place that nobody uses any more is left out.
// Pure. Requires: `plan` has the stages and groups of the one that `parking` was laid out for.
WorkerParking MoveParking(const WorkerParking& parking, const MemoryPlan& plan);

// Bytes that the workers park on this device together.
Bytes LentBytes(const std::vector<WorkerParking>& parking, DeviceId lender);
// Bytes that they park on the host together.
Bytes HostBytes(const std::vector<WorkerParking>& parking);
// Bytes that they park on drives together.
Bytes DriveBytes(const std::vector<WorkerParking>& parking);

}  // namespace siphon

#endif  // SIPHON_SWAP_PARKING_LAYOUT_H_
