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

// Where each ring lies in the shared region (the workers' doorbells come first); the same on every
// worker, since it is computed from the same list.
struct RingLayout {
  std::vector<RingSpec> rings;
  std::vector<int64_t>
      offsets;  // of each ring's header, multiples of 64, from the region's first 64-byte boundary
  Bytes region_bytes;  // to allocate, alignment of the base included
};
RingLayout LayOutRings(std::vector<RingSpec> rings);

// Messages through single-producer single-consumer rings in memory that all workers have mapped (an
// MPI shared window; in tests a plain buffer shared by threads). Atomics only; a wait that finds
// nothing yields a few times and then sleeps on a futex (doorbell.h) that the peer's next copy
// ends: no other system call, and no MPI call, in the steady state. A message larger than its ring
// passes in pieces. Sends copy into the ring at once as far as there is room; a send is done when
// its last byte is in the ring. The channels are those of the layout.
//
// Requires: `region` holds layout.region_bytes, zero-filled before any worker calls this, and
// outlives the transport. Errors: InvalidArgument if the region is too small, a channel has two
// rings, or its ends are no two workers.
absl::StatusOr<std::unique_ptr<Transport>> MakeRingTransport(WorkerId me,
                                                             absl::Span<std::byte> region,
                                                             RingLayout layout,
                                                             LivenessCheck check);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_RING_TRANSPORT_H_
