#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_OPTIONS_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/transport/transport.h"
#include "planner/units.h"

namespace siphon {

// What a transport over NCCL is made with; no CUDA in here, so that anybody may include it.
struct NcclTransportOptions {
  WorkerId me;
  int workers = 0;
  int device = 0;                 // of this worker, among the visible ones
  std::vector<Channel> channels;  // that may carry memory of devices; the same on all workers
  // The stream that the worker computes on (a cudaStream_t): a message begins when all is done that
  // the stream was given before StartSend or StartReceive. None: at once.
  std::optional<void*> work_stream;
  // Thread blocks, and so multiprocessors, that a message takes from the computation while it is
  // under way. 4 are about 80 GB/s of NVLink (a guess until a device has answered).
  int max_ctas = 4;
  // Patience with a peer that does not come, while the liveness check finds nothing wrong.
  Nanos connect_patience{int64_t{120} * 1'000'000'000};
  Nanos message_patience{int64_t{600} * 1'000'000'000};
  // How long the liveness check may take to say which worker is gone, where NCCL has found first
  // that a connection is.
  Nanos loss_patience{1'000'000'000};
  // How often a wait looks. A boundary of a few MiB takes as long.
  Nanos poll{20'000};
  std::string library = "libnccl.so.2";
};

struct NcclTransportMade {
  std::unique_ptr<Transport> transport;
  // What the device lost until all channels were connected: NCCL's, with its kernels, where nobody
  // else takes memory of the device meanwhile. Peers make contexts of their own until then, so of
  // a device that workers share it says nothing.
  Bytes device_memory;
  Bytes device_free;  // that it has left then
};

// Channels of the host transport that a transport over NCCL needs for these channels, beside those
// that carry memory of the host: small records, forward both ways between all pairs.
std::vector<Channel> NcclRecordChannels(const std::vector<Channel>& channels);
// Bytes of the largest message on them.
inline constexpr Bytes kNcclRecordBytes{128};

// Device memory of the communicators of one worker before anything is measured. For each end of a
// channel: the buffers of each thread block, and what a communicator takes for itself.
Bytes NcclMemoryOf(WorkerId worker, const std::vector<Channel>& channels, int max_ctas);

// The environment in which several ranks may share one device, for tests: each of them is a host of
// its own to NCCL, and they talk over loopback sockets. Before the process's first call of NCCL.
void ShareDeviceWithOtherRanks(int rank);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_OPTIONS_H_
