#ifndef SIPHON_SWAP_HOST_COPIES_H_
#define SIPHON_SWAP_HOST_COPIES_H_

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "planner/units.h"
#include "swap/device/device_backend.h"

namespace siphon {

// Bytes of a worker's memory, and as many of the host's.
struct HostCopy {
  absl::Span<const std::byte> from;
  absl::Span<std::byte> to;
};

// What a worker copies to the host and back besides its tensor groups, over its link to the host:
// what an optimizer step on the host takes and gives.
//
// Thread-safety: one thread, the worker's. Errors: those of the backend, and DataLoss where a
// checksum differs.
class HostCopies {
 public:
  // `checks`: a checksum of each tensor, here and there.
  HostCopies(DeviceBackend* backend, bool checks) : backend_(backend), checks_(checks) {}

  // Starts copies of one lane; both sides stay untouched until Wait returned.
  CopyEvent Start(CopyLane lane, std::vector<HostCopy> copies);
  absl::Status Wait(CopyEvent event);

  // Whether anything is under way; after DeviceBackend::Abort nothing is.
  bool moves() const { return !under_way_.empty(); }
  void Forget() { under_way_.clear(); }
  // What went out since the last call.
  Bytes TakeBytesOut() { return std::exchange(bytes_out_, Bytes(0)); }

 private:
  DeviceBackend* const backend_;
  const bool checks_;
  std::map<CopyEvent, std::vector<HostCopy>> under_way_;
  Bytes bytes_out_;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_HOST_COPIES_H_
