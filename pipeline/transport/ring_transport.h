#ifndef SIPHON_PIPELINE_TRANSPORT_RING_TRANSPORT_H_
#define SIPHON_PIPELINE_TRANSPORT_RING_TRANSPORT_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/transport/transport.h"
#include "planner/units.h"

namespace siphon {

// A channel and how many bytes its ring holds (rounded up to 64).
struct RingSpec {
  Channel channel;
  Bytes capacity;
};

// Where each ring lies in the shared region; the same on every worker, since it is computed of the same list.
struct RingLayout {
  std::vector<RingSpec> rings;
  std::vector<int64_t> offsets;  // of each ring's header, multiples of 64, from the region's first 64-byte boundary
  Bytes region_bytes;            // to allocate, alignment of the base included
};
RingLayout LayOutRings(std::vector<RingSpec> rings);

// Messages through single-producer single-consumer rings in memory that all workers have mapped (an MPI shared window;
// in tests a plain buffer shared by threads). std::atomic only: no system or MPI call but sched_yield in the steady state.
// A message larger than its ring passes in pieces. Sends copy into the ring at once as far as there is room.
//
// Requires: `region` holds layout.region_bytes, zero-filled before any worker calls this, and outlives the transport.
absl::StatusOr<std::unique_ptr<Transport>> MakeRingTransport(WorkerId me, absl::Span<std::byte> region,
                                                             RingLayout layout, LivenessCheck check);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_RING_TRANSPORT_H_
