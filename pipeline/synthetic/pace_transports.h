#ifndef SIPHON_PIPELINE_SYNTHETIC_PACE_TRANSPORTS_H_
#define SIPHON_PIPELINE_SYNTHETIC_PACE_TRANSPORTS_H_

#include <functional>
#include <memory>
#include <vector>

#include "pipeline/synthetic/work_clock.h"
#include "pipeline/transport/transport.h"
#include "swap/device/link_queues.h"

namespace siphon {

// How fast messages of a channel are.
using MessageRateOf = std::function<CopyLinkRate(const Channel&)>;

// `transports` of one process, element w worker w's, with messages that take their time
// (PaceTransport), each channel by itself. `clock` is the same for all workers and can be called by
// several threads.
std::vector<std::unique_ptr<Transport>> PaceTransports(
    std::vector<std::unique_ptr<Transport>> transports, MessageRateOf rate_of, WorkClock clock);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_PACE_TRANSPORTS_H_
