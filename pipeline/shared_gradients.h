#ifndef SIPHON_PIPELINE_SHARED_GRADIENTS_H_
#define SIPHON_PIPELINE_SHARED_GRADIENTS_H_

#include <functional>
#include <map>

#include "absl/status/status.h"
#include "pipeline/stage_compute.h"
#include "pipeline/transport/transport.h"
#include "pipeline/worker_layout.h"

namespace siphon {

// Waits for a started transfer; Transport::Wait, or something that takes the time meanwhile.
using AwaitTransfer = std::function<absl::Status(TransferId)>;

// Gives every stage here that shares parameters the gradients of all their uses in other stages,
// and has it add them up. Collective among the workers that share. Each use's gradient goes once to
// each worker that needs it, on the control lane, in the order (parameter, use, receiver): the same
// order at both ends of a channel, whatever stages they hold. All transfers are started before the
// first is waited for.
//
// Requires: the gradients of all stages here are complete. `transport` may be null when nothing is
// shared between workers. Errors: Internal when a stage's list of uses does not fit the layout;
// those of the transport.
absl::Status ExchangeSharedGradients(WorkerId me, const WorkerLayout& layout,
                                     const std::map<StageId, StageCompute*>& stages,
                                     Transport* transport, const AwaitTransfer& await);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SHARED_GRADIENTS_H_
