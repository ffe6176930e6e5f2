#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_TRANSPORT_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_TRANSPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "pipeline/transport/nccl_options.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// Messages between memories of devices, by NCCL; messages of the control lane that are in the
// host's memory go over `host`, and so does what workers tell each other about sizes. Several
// hosts: NCCL finds its network, `host` is a transport that reaches them.
//
// Each channel has a communicator of its own and a stream of its own, so that none waits behind
// another one. A message is given to NCCL when it is started, in the order of the worker's program,
// which the validator has shown to finish where a send ends only with its receive. What a worker
// computes is never ordered behind a message: it is started when the host has seen the message
// arrive. A transfer is done when the device has done it and, at its receiver, when the sender's
// sizes are the same. After an error of NCCL, of the liveness check, or when a message takes too
// long, everything that is under way is aborted here, and every later call returns that error.
//
// Collective: all workers of options.channels make theirs at once. Errors: FailedPrecondition
// without NCCL or a device; Unavailable when a peer does not come; those of CUDA and NCCL.
absl::StatusOr<NcclTransportMade> MakeNcclTransport(const NcclTransportOptions& options,
                                                    std::unique_ptr<Transport> host,
                                                    LivenessCheck check);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_TRANSPORT_H_
