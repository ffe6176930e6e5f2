#ifndef SIPHON_SWAP_DEVICE_CUDA_MODULE_H_
#define SIPHON_SWAP_DEVICE_CUDA_MODULE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/units.h"
#include "swap/device/copy_trial.h"
#include "swap/device/cuda_options.h"
#include "swap/device/device_backend.h"

namespace siphon {

// What the shared object siphon_cuda gives; whoever uses it knows no CUDA and links none. These are
// tables of functions because the program finds them at run time (load_cuda_module.h).

// Memory is exported in whole blocks of the driver: of a smaller one, other processes would see
// what else lies in its block.
inline constexpr Bytes kCudaArenaBlock{2 << 20};

// What a context takes of a device where a process only takes memory and copies; ASSUMED: the order
// of what drivers take without kernels.
inline constexpr Bytes kCudaLenderContext{512 << 20};

// Memory of a device that other workers may park in; theirs to read and write as long as it lives.
// Thread-safety: any thread.
class ParkingArena {
 public:
  virtual ~ParkingArena() = default;
  // On the device; not for the host to read.
  virtual absl::Span<std::byte> memory() const = 0;
  // Opens it in another process of this machine, or in this one. Opaque bytes.
  virtual const std::string& handle() const = 0;
};

// Memory of an arena, as the worker sees it that has opened it. Requires: it goes before the arena
// does; nothing is under way then.
class OpenedArena {
 public:
  virtual ~OpenedArena() = default;
  virtual absl::Span<std::byte> memory() const = 0;
};

// Page-locked memory of the host, taken at the start. Thread-safety: one thread.
class PinnedPool {
 public:
  virtual ~PinnedPool() = default;
  // The next bytes, from a page's begin on; they are the caller's as long as the pool lives.
  // Errors: ResourceExhausted when less is left.
  virtual absl::StatusOr<absl::Span<std::byte>> Take(Bytes bytes) = 0;
  virtual Bytes left() const = 0;
  // For who moves to a plan that parks more: so many bytes, all of them taken, zeros behind what
  // was there. Nothing of it moves, and it is never there twice. Requires: no copy to or from it is
  // under way. Errors: ResourceExhausted, and it stays as it is; Internal, and it is not locked any
  // more.
  virtual absl::StatusOr<absl::Span<std::byte>> Enlarge(Bytes bytes) = 0;
};

// What a profiler shows of the threads that say so: ranges, one within another. Thread-safety: any
// thread.
class ProfilerRanges {
 public:
  virtual ~ProfilerRanges() = default;
  virtual void Push(const std::string& name) const = 0;
  virtual void Pop() const = 0;
  virtual void NameThread(const std::string& name) const = 0;
};

class CudaModule {
 public:
  virtual ~CudaModule() = default;

  // At least one; makes no context on any. Errors: FailedPrecondition, in one line, where there is
  // no driver or no device.
  virtual absl::StatusOr<std::vector<CudaDeviceInfo>> Devices() const = 0;
  // Errors: as Devices; Internal.
  virtual absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(
      const CudaBackendOptions& options) const = 0;
  // At least `bytes`, in whole blocks of 2 MiB. Waits for all work of the device: not in a step.
  // Errors: ResourceExhausted, with what is free.
  virtual absl::StatusOr<std::unique_ptr<ParkingArena>> MakeArena(int device,
                                                                  Bytes bytes) const = 0;
  // Opens an arena for copies by `device`. Errors: InvalidArgument for what is no handle,
  // Unavailable when its owner is gone, or the device does not reach the memory's.
  virtual absl::StatusOr<std::unique_ptr<OpenedArena>> OpenArena(
      int device, absl::string_view handle) const = 0;
  // Errors: ResourceExhausted beyond the cap, or when the host has not as much.
  virtual absl::StatusOr<std::unique_ptr<PinnedPool>> MakePinnedPool(
      const PinnedPoolOptions& options) const = 0;
  // Between any two memories that `device` reaches; complete when it returns. On a stream of the
  // calling thread's own, whose current device this is from then on: to go back to device 0, as
  // which threads begin, would make a context there. Errors: Internal.
  virtual absl::Status CopyNow(int device, void* to, const void* from, size_t bytes) const = 0;
  // Whether this process can go on with the device. Errors: Internal, with why not and what to do
  // (cuda_health.h).
  virtual absl::Status Health(int device) const = 0;
  // The NUMA node that `device` is near, by its place on the bus; none: one node, or a virtual
  // machine hides it. Makes no context on it.
  virtual std::optional<int> NumaNode(int device) const = 0;
  // Whether copies that `device` issues reach memory of `peer` without the host. Errors: Internal.
  virtual absl::StatusOr<bool> Reaches(int device, int peer) const = 0;
  // Null: no profiler watches this process. It lives as long as the process.
  virtual const ProfilerRanges* Ranges() const = 0;
  // Times copies; a figure for each path. Errors: as cuda_copy_trial.h has them.
  virtual absl::StatusOr<std::vector<CopyFigure>> RunTrial(const CopyTrial& trial) const = 0;
};

// Of this header and those that it includes; a module with another number is refused.
inline constexpr int kCudaModuleInterface = 7;

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_MODULE_H_
