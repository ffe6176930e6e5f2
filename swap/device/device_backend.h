#ifndef SIPHON_SWAP_DEVICE_DEVICE_BACKEND_H_
#define SIPHON_SWAP_DEVICE_DEVICE_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/units.h"
#include "swap/device/copy_side.h"
#include "swap/memory_checksum.h"

namespace siphon {

// Each worker copies out and in at the same time.
enum class CopyLane { kOut, kIn };

// What a piece of a copy runs over: the place in the list of links that the backend was made with
// (the host's first, then one for each lender).
using CopyLinkId = Id<struct CopyLinkTag>;

// Bytes that go from one place to another over one link. Both sides have one size, and stay valid
// and untouched by others until the copy is complete; one of them at least is in memory.
struct CopyPart {
  CopySide<const std::byte> from;
  CopySide<std::byte> to;
  CopyLinkId link;
};

using CopyEvent = Id<struct CopyEventTag>;

// What went over a link, and how long it took: from when a copy was there, and the one before it
// through, until it was found to be through.
struct CopyLinkUse {
  int64_t copies = 0;
  Bytes bytes;
  Nanos time;
  friend bool operator==(const CopyLinkUse&, const CopyLinkUse&) = default;
};

// Copies between a worker's memory and where tensors are parked: threads on the CPU, streams on
// CUDA.
//
// Thread-safety: one thread, the worker's.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Enqueues a copy and returns at once. Its parts run at the same time, each over its link. In
  // each lane a link takes one copy after the other, in the order in which they were started;
  // copies over different links may overlap, and end in another order.
  virtual CopyEvent StartCopy(CopyLane lane, std::vector<CopyPart> parts) = 0;
  // Whether the copy is complete. Errors: Internal when it failed, Cancelled after Abort,
  // InvalidArgument for an event that was never given out. Any number of times.
  virtual absl::StatusOr<bool> Test(CopyEvent event) = 0;
  // Returns when the copy is complete. Errors: as Test.
  virtual absl::Status Wait(CopyEvent event) = 0;
  // Gives up all copies that are not complete. When it returns no memory is touched any more.
  virtual void Abort() = 0;

  // [CopyLinkId]: of the copies that have become complete since the last call.
  virtual std::vector<CopyLinkUse> TakeUse() = 0;
  // For tests: copies over the link take `factor` times as long from now on. Requires: the factor
  // is at least 1.
  virtual void SlowDown(CopyLinkId link, double factor) = 0;

  // MemoryChecksum of each tensor of the worker, as its work so far leaves it; the worker's thread
  // need not be able to read them. Errors: Internal.
  virtual absl::StatusOr<std::vector<uint64_t>> Checksums(
      absl::Span<const absl::Span<const std::byte>> tensors) {
    std::vector<uint64_t> checksums;
    checksums.reserve(tensors.size());
    for (const absl::Span<const std::byte> tensor : tensors) {
      checksums.push_back(MemoryChecksum(tensor));
    }
    return checksums;
  }
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_DEVICE_BACKEND_H_
