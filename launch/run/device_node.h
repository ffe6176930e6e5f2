#ifndef SIPHON_LAUNCH_RUN_DEVICE_NODE_H_
#define SIPHON_LAUNCH_RUN_DEVICE_NODE_H_

#include <optional>

#include "launch/run/prepare_job.h"
#include "launch/run/worker_seat.h"
#include "planner/ids.h"

namespace siphon {

// The NUMA node that a worker's device is near: what its driver says, and only where that is
// silent the topology of the plan, which may be another server's. None: not known, or a worker on
// the CPU (`device` is null), for whom a topology only imitates devices.
std::optional<int> NodeOfDevice(const PreparedJob& prepared, const WorkerDevice* device,
                                WorkerId me);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_DEVICE_NODE_H_
