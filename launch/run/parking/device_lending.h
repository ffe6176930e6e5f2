#ifndef SIPHON_LAUNCH_RUN_PARKING_DEVICE_LENDING_H_
#define SIPHON_LAUNCH_RUN_PARKING_DEVICE_LENDING_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/worker_seat.h"
#include "planner/ids.h"
#include "swap/device/cuda_module.h"
#include "swap/parking_layout.h"

namespace siphon {

// Memory of devices that CUDA workers lend to each other: one arena on each lender's device, opened
// by those who park there, in the layout of LayOutRegion. Taken before the first step, and anew
// only between steps, for another plan.
//
// Thread-safety: one thread, the worker's. An arena may go only when nobody has it open any more:
// Close sees to that. Without it, as after an error, the arena is left to the end of the process.
class DeviceLending {
 public:
  // The arguments outlive this. `device_of`: each worker's.
  DeviceLending(const WorkerDevice& device, WorkerId me, std::vector<DeviceId> device_of,
                Coordinator& coordinator);
  ~DeviceLending();
  DeviceLending(const DeviceLending&) = delete;
  DeviceLending& operator=(const DeviceLending&) = delete;

  // What this worker takes of its device for others by that plan, in whole blocks.
  Bytes LentHere(const std::vector<WorkerParking>& parking) const;
  // Takes it. Requires: nothing was taken since Close. Errors: ResourceExhausted.
  absl::Status Lend(const std::vector<WorkerParking>& parking);
  // Collective: opens what others lend to this worker, as far as they do. On a lender's device that
  // has no worker, the owner takes its part itself. Errors: on all workers alike.
  absl::Status Open(const std::vector<WorkerParking>& parking);
  // Since then: lenders of this worker's whose memory it cannot use, and why, in a line each. Its
  // device does not reach theirs, or one without a worker has too little.
  const std::map<DeviceId, std::string>& out_of_reach() const { return out_of_reach_; }
  // This worker's part of what the device lends; empty: it lends nothing.
  absl::Span<std::byte> PartAt(DeviceId lender) const;
  // Collective: everybody closes what those lend, and their arenas go; nobody parks there then.
  absl::Status CloseAt(const std::set<DeviceId>& lenders);
  // Collective: everybody closes what others lend, and the own arena goes.
  absl::Status Close();

 private:
  const WorkerDevice& device_;
  const WorkerId me_;
  const std::vector<DeviceId> device_of_;
  Coordinator& coordinator_;
  std::unique_ptr<ParkingArena> own_;
  std::vector<std::unique_ptr<ParkingArena>> idle_;          // on devices without a worker
  std::map<DeviceId, std::unique_ptr<OpenedArena>> opened_;  // by lender
  std::map<DeviceId, absl::Span<std::byte>> parts_;          // by lender
  std::map<DeviceId, std::string> out_of_reach_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_DEVICE_LENDING_H_
