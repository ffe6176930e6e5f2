#ifndef SIPHON_SWAP_SWAP_ENGINE_H_
#define SIPHON_SWAP_SWAP_ENGINE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/action.h"
#include "planner/ids.h"
#include "swap/device/device_backend.h"
#include "swap/host_copies.h"
#include "swap/parking_layout.h"
#include "swap/parking_slots.h"

namespace siphon {

// The tensors of a group, of one microbatch (kNoMicrobatch where the group belongs to none: it is
// there once, and keeps its slot).
struct ParkedGroup {
  StageId stage;
  GroupId group;
  MicrobatchId microbatch;
  friend auto operator<=>(const ParkedGroup&, const ParkedGroup&) = default;
};
// "stage 2, group 3, microbatch 5"
std::string ToString(const ParkedGroup& group);

// How much a worker checks of what it moves.
enum class SwapCheck {
  kOff,
  kCheap,  // at a step's end nothing is away and every slot is free
  kFull,   // and a 64-bit checksum of each tensor, out and back
};

// Moves the tensor groups of one worker to where its plan parks them, and back; keeps the books of
// what is away (the residence table). It moves bytes alone: who frees and takes the worker's own
// memory is the caller.
//
// Thread-safety: one thread, the worker's. Errors: FailedPrecondition when calls come in an
// impossible order (names the group and where it is), InvalidArgument when the tensors are not
// those of the plan, those of the backend, and DataLoss where a checksum differs.
class SwapEngine {
 public:
  // `backend` and the memory outlive the engine. Requires: memory for every place of the layout, as
  // large as it says.
  SwapEngine(DeviceBackend* backend, WorkerParking parking,
             std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check);
  ~SwapEngine() { Abort(); }
  SwapEngine(const SwapEngine&) = delete;
  SwapEngine& operator=(const SwapEngine&) = delete;

  // Starts the copy out of `tensors`, in order; they add up to at most the group's bytes. They stay
  // untouched until WaitOut returned.
  absl::Status StartOut(const ParkedGroup& group, std::vector<absl::Span<const std::byte>> tensors);
  // The copy out is complete: the memory may be freed. Any number of times until StartIn.
  absl::StatusOr<bool> IsOut(const ParkedGroup& group);
  absl::Status WaitOut(const ParkedGroup& group);
  // Starts the copy back into `tensors`, of the sizes that went out; one without data stays as it
  // is (its memory was never freed).
  absl::Status StartIn(const ParkedGroup& group, std::vector<absl::Span<std::byte>> tensors);
  // The tensors are back, and checked; the slot is free again. Any number of times until the group
  // leaves again.
  absl::StatusOr<bool> IsIn(const ParkedGroup& group);
  absl::Status WaitIn(const ParkedGroup& group);

  // After an error, before tensors are freed that may be under way: gives up what moves, and when
  // it returns nothing touches tensors or parking any more. What was given up is lost.
  void Abort();

  // Of a group without microbatch that is back and has not changed since: away again without a
  // copy, for the slot still has what left. Its memory may be freed.
  absl::Status Drop(const ParkedGroup& group);

  // For who works on what is parked where it lies: the slot of a group without microbatch that has
  // left once, tensor by tensor, in memory of the host; empty where it is parked elsewhere. Errors:
  // FailedPrecondition while it is on its way.
  absl::StatusOr<std::vector<absl::Span<std::byte>>> OnHost(const ParkedGroup& group);
  // The slot has been written to.
  absl::Status ChangedOnHost(const ParkedGroup& group);

  // From now on groups go to the places of `parking` (MoveParking of the one before); what is away
  // and has another place there is carried over. Between steps: nothing is on its way. `memory` as
  // for the constructor, at each place that stays with the bytes that are there; memory of places
  // that `parking` leaves may go when this returns. Errors: FailedPrecondition for what is on its
  // way, or away and has no slot any more; those of the backend, and then the engine is of no use.
  absl::Status Rehouse(WorkerParking parking, std::map<ParkingPlace, ParkingMemory> memory);

  // What goes to the host and back besides groups; counted, checked and given up like those.
  HostCopies& host_copies() { return host_copies_; }

  // Whether anything of the group is out or on its way.
  bool IsAway(const ParkedGroup& group) const;

  // What went out since the last call, by tier.
  std::map<Placement, Bytes> TakeBytesOut();
  // Internal, naming what is left, when something of a microbatch is away; always OK with
  // SwapCheck::kOff.
  absl::Status CheckNothingAway() const;
  // The residence table, a line a group: where it is, its tensors, bytes and pieces.
  std::string Table() const;

 private:
  enum class Where {
    kLeaving,
    kAway,
    kComingBack,
    kBack,  // or never out
  };
  struct Residence {
    Where where = Where::kBack;
    CopyEvent event;
    const ParkingSlot* slot = nullptr;        // while it is not back; without microbatch always
    std::vector<size_t> sizes;                // of the tensors
    std::vector<uint64_t> checksums;          // of the tensors, with kFull
    std::vector<absl::Span<std::byte>> back;  // while they come back
  };

  static absl::string_view TextOf(Where where);
  Residence* Find(const ParkedGroup& group);
  // Those whose copy out, or in, may be asked for.
  absl::StatusOr<Residence*> Leaving(const ParkedGroup& group);
  absl::StatusOr<Residence*> ComingBack(const ParkedGroup& group);
  // Takes one for a group that leaves. Null: none is free.
  const ParkingSlot* TakeSlot(const ParkedGroup& group);
  void CountOut(const ParkingSlot& slot, size_t bytes);
  absl::Status CheckBack(const ParkedGroup& group, const Residence& residence) const;
  absl::Status FinishIn(const ParkedGroup& group, Residence& residence);
  absl::Status CheckRehousing(const WorkerParking& parking) const;

  DeviceBackend* const backend_;
  ParkingSlots slots_;
  const SwapCheck check_;
  HostCopies host_copies_;
  // Those that are back stay, with their vectors' memory, for the next step.
  std::map<ParkedGroup, Residence> residences_;
  std::map<Placement, Bytes> bytes_out_;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_SWAP_ENGINE_H_
