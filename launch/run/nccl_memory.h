#ifndef SIPHON_LAUNCH_RUN_NCCL_MEMORY_H_
#define SIPHON_LAUNCH_RUN_NCCL_MEMORY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "planner/ids.h"
#include "planner/units.h"

namespace siphon {

// What NCCL has of one worker's device, beside what the plan has given it.
struct NcclMemory {
  WorkerId worker;
  Bytes planned;  // NcclMemoryOf
  // What the device has lost while the channels were connected, and has left then. None: others
  // were taking memory of it at the same time.
  struct Measured {
    Bytes taken;
    Bytes free;
  };
  std::optional<Measured> measured;
};

// What goes onto the worker's books. Never more than planned: a plan may fill memory.capacity to
// the last block, and what NCCL takes beyond is of what contexts are left (CudaCapacity).
Bytes BookedOf(const NcclMemory& nccl);

// Where NCCL has more than planned, to be said once: "NCCL has 412 MiB of worker 1's device, and
// 120 MiB were planned: ...".
std::optional<std::string> WarningOf(const NcclMemory& nccl);

// Whether the device has what the worker's plan needs there beside NCCL; `peak`: PredictedPeaks.
// OK where nothing was measured. Errors, with what is left and what is needed: ResourceExhausted
// where NCCL takes more than planned and leaves too little, with how much smaller memory.capacity
// must be; else FailedPrecondition, as somebody else has the memory.
absl::Status CheckRoomBeside(const NcclMemory& nccl, Bytes peak);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_NCCL_MEMORY_H_
