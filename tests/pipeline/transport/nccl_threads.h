#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_NCCL_THREADS_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_NCCL_THREADS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/transport/nccl_options.h"
#include "tests/pipeline/transport/nccl_rig.h"
#include "tests/pipeline/transport/thread_worlds.h"

namespace siphon {

// Transports over NCCL of workers in one process, each with a device of its own: on the fakes only,
// since NCCL wants another process for each rank on one device.
struct NcclThreads {
  ThreadJob host;  // its transports are in those below
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<absl::StatusOr<NcclTransportMade>> made;

  Transport& transport(int worker) { return *made[static_cast<size_t>(worker)]->transport; }
  bool ok() const;
};

// Makes them, all at once, in threads; data channels between all pairs. `change`: of the options of
// each, before.
NcclThreads MakeNcclThreads(ThreadJob host, const LivenessCheck& check,
                            const std::function<void(NcclTransportOptions&)>& change);

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_NCCL_THREADS_H_
