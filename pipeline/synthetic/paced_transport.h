#ifndef SIPHON_PIPELINE_SYNTHETIC_PACED_TRANSPORT_H_
#define SIPHON_PIPELINE_SYNTHETIC_PACED_TRANSPORT_H_

#include <functional>
#include <memory>
#include <vector>

#include "pipeline/synthetic/work_clock.h"
#include "pipeline/transport/transport.h"
#include "swap/device/link_queues.h"

namespace siphon {

// How fast messages of a channel are.
using MessageRateOf = std::function<CopyLinkRate(const Channel&)>;

// `transports` of one process, element w worker w's, with messages that take their time: one
// arrives when its latency and its bytes at the channel's rate have passed since both ends had
// started it and the message before it on the channel was there; its receiver is told then. Its
// sender is told when `transports` does. Lane::kControl is not paced.
//
// Each is used by one thread, as the one that it paces. `clock` is the same for all workers and can
// be called by several threads; waits sleep by it, without the liveness check, for no longer than
// messages take.
std::vector<std::unique_ptr<Transport>> PaceTransports(
    std::vector<std::unique_ptr<Transport>> transports, MessageRateOf rate_of, WorkClock clock);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_PACED_TRANSPORT_H_
