#ifndef SIPHON_SWAP_DEVICE_SHARED_WAYS_H_
#define SIPHON_SWAP_DEVICE_SHARED_WAYS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/units.h"

namespace siphon {

// Something with a rate that several links run over, in one direction: the uplink of a switch, what
// a device lets out, the wires between two devices, a copy engine.
struct SharedWay {
  BytesPerSecond rate;       // 0: no limit
  BytesPerSecond rate_both;  // while the way back is in use too; 0: as alone
  int back = -1;             // the way in the other direction: its place in the list; -1: none
  friend bool operator==(const SharedWay&, const SharedWay&) = default;
};
using SharedWayId = Id<struct SharedWayTag>;

// Keeps ways at their rates among all workers that use them, without a message: each way has the
// time until which it is taken, in memory that all of them have mapped, and whoever wants to move
// bytes books the time behind that. Nobody gets ahead of others by more than what is booked at a
// time, so that those who want a way all the time have equal shares of it, and one alone has all of
// it. That is the simulator's rule (max-min fair, slower while both directions run) as far as
// bookings are small; what is booked over several ways is as slow as the slowest of them.
//
// Thread-safety: any thread of any process that has the memory mapped; no locks.
class SharedWays {
 public:
  // Of `ways`; all zero before the first booking.
  static Bytes BytesFor(size_t ways);
  // `memory` is as large as BytesFor says and begins at a multiple of 8; it outlives this. All who
  // share it have the same ways.
  SharedWays(std::vector<SharedWay> ways, absl::Span<std::byte> memory);

  // When `bytes` that may begin at `begin` are through over all of `over`, by the clock of all
  // workers (of one machine).
  Nanos Book(absl::Span<const SharedWayId> over, Bytes bytes, Nanos begin) const;

 private:
  Nanos BookOne(size_t way, Bytes bytes, Nanos begin) const;

  std::vector<SharedWay> ways_;
  absl::Span<std::byte> memory_;
};

// How long bytes take, rounded up: never faster than the rate. 0 for a rate of 0.
Nanos MovingTime(Bytes bytes, BytesPerSecond rate);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_SHARED_WAYS_H_
