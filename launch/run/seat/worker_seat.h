#ifndef SIPHON_LAUNCH_RUN_SEAT_WORKER_SEAT_H_
#define SIPHON_LAUNCH_RUN_SEAT_WORKER_SEAT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/run/seat/training_state.h"
#include "pipeline/stage_worker.h"
#include "pipeline/torch/device/torch_device.h"
#include "pipeline/transport/transport.h"
#include "planner/plan_text.h"
#include "planner/units.h"
#include "swap/device/cuda_module.h"

namespace siphon {

// The device that a worker computes on, where that is not the CPU. Both outlive the run.
struct WorkerDevice {
  TorchDevice* torch = nullptr;      // opened by the worker's thread
  const CudaModule* cuda = nullptr;  // copies, memory to lend, locked memory of the host
  // The visible device that one of the plan is.
  std::function<int(DeviceId device)> index_of;
  int visible = 0;               // devices that there are; 0: as many as any plan has
  std::optional<int> numa_node;  // that the device is near, as its driver says; none: not known
};
// What locks memory of the host for copies of that device (HostMapping::Make).
inline const CudaModule* LocksOf(const WorkerDevice* device) {
  return device == nullptr ? nullptr : device->cuda;
}

// What a worker gets from the process or thread that it lives in.
struct WorkerSeat {
  WorkerId me;
  Transport* transport = nullptr;
  Bytes communication_bytes;   // rings that count as this worker's memory
  absl::Span<std::byte> lent;  // ParkingRegionBytes that all workers share; outlives the run
  const WorkerDevice* device = nullptr;  // null: the CPU
  std::function<bool()> stop_requested;
  StageWorker::ActionObserver at_action;  // before each action
  // Before each phase outside the steps. ResourceExhausted at kLendingPhase and kHostMemoryPhase is
  // memory that is not given, any error at kDrivePhase a drive that gives no room.
  PhaseObserver at_phase;
  std::function<void(int64_t step, const std::string& checkpoint)>
      at_progress;  // after each step and checkpoint
  // With what the run will return, before anything of it is taken down: that may wait for a device
  // that does nothing any more.
  std::function<void(const absl::Status& failure)> at_failure;
  // Collective: more memory that all workers share, zero-filled, until the run ends; null: there is
  // none to be had. Errors: on all workers alike.
  std::function<absl::StatusOr<absl::Span<std::byte>>(Bytes bytes)> more_shared;
  // For tests: how many times slower than planned the link to a place (NameOfPlace) is to be.
  std::function<double(const std::string& place)> slowness;
  // For tests: whether somebody else has taken all that the host had left.
  std::function<bool()> host_is_full;
  // For tests: the plan to move to behind so many steps of the job; what the run's Replanner would
  // say is not asked then.
  std::function<std::optional<PlanText>(int64_t steps)> next_plan;
  // For tests: before each chunk of a copy, by the threads that copy; an error fails it.
  std::function<absl::Status()> at_chunk;
};

inline constexpr char kMovingPhase[] = "moving to another plan";
inline constexpr char kLendingPhase[] = "lending memory";
inline constexpr char kHostMemoryPhase[] = "taking host memory";
inline constexpr char kDrivePhase[] = "taking room on the drive";

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_WORKER_SEAT_H_
