#ifndef SIPHON_LAUNCH_RUN_PARKING_THROTTLE_MESSAGES_H_
#define SIPHON_LAUNCH_RUN_PARKING_THROTTLE_MESSAGES_H_

#include <cstddef>
#include <memory>

#include "absl/types/span.h"
#include "launch/run/job/prepare_job.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// A worker's transport with messages held to the rates of topology.throttle, which they share with
// what is parked; as it is where there are none. `shared` is the region of ParkingRegionBytes, of
// all workers; empty: nothing is held.
std::unique_ptr<Transport> ThrottleMessages(const PreparedJob& prepared,
                                            std::unique_ptr<Transport> transport,
                                            absl::Span<std::byte> shared);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_THROTTLE_MESSAGES_H_
