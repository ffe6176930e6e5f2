#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_CONNECT_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_CONNECT_H_

#include <list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/transport/nccl_communicator.h"
#include "pipeline/transport/nccl_options.h"
#include "pipeline/transport/paced_check.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// The channels that a worker has an end of, in the order in which all workers connect theirs: pairs
// that have no worker in common at once, as far as that goes.
std::vector<Channel> NcclOrder(WorkerId me, std::vector<Channel> channels);

struct NcclConnection {
  Channel channel;
  std::unique_ptr<NcclCommunicator> communicator;
};

// Makes a communicator for each channel of this worker, in that one order, and sends a byte over
// each, so that NCCL connects and takes its memory now: later it would stop the host in the midst
// of a step. The ids go over `host`, on the channels of NcclRecordChannels. Requires: `ids`, where
// they are meanwhile, outlives `host`.
//
// Errors: Unavailable when a peer does not come; those of NCCL, CUDA and the liveness check.
absl::StatusOr<std::vector<NcclConnection>> ConnectNccl(const NcclTransportOptions& options,
                                                        const NcclApi& api, Transport& host,
                                                        CudaEventPool& events, PacedCheck& check,
                                                        std::list<NcclUniqueId>& ids);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_CONNECT_H_
