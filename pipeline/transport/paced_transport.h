#ifndef SIPHON_PIPELINE_TRANSPORT_PACED_TRANSPORT_H_
#define SIPHON_PIPELINE_TRANSPORT_PACED_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "pipeline/transport/transport.h"
#include "planner/units.h"

namespace siphon {

// When messages were started by their senders, in memory that all workers have mapped, zero at the
// begin: of each channel the last kRemembered. One sender and one receiver a channel; no locks.
class MessagePosts {
 public:
  static constexpr int64_t kRemembered = 64;
  static Bytes BytesFor(int workers);
  // `memory` is as large as that, begins at a multiple of 8 and outlives this.
  MessagePosts(int workers, absl::Span<std::byte> memory);

  // The channel's message of that number, from 0; nothing for a channel of other workers.
  void Post(const Channel& channel, int64_t number, Nanos now) const;
  // Of a message that has arrived. 0 of one that is not remembered: it was started long ago.
  Nanos PostOf(const Channel& channel, int64_t number) const;

 private:
  int64_t* SlotOf(const Channel& channel, int64_t number) const;

  int workers_;
  absl::Span<std::byte> memory_;
};

// When a message whose bytes may go from `begin` on is there. Called once a message, in the order
// of its channel.
using MessageArrival = std::function<Nanos(const Channel& channel, Bytes bytes, Nanos begin)>;

// One time for all workers.
struct PaceClock {
  std::function<Nanos()> now;
  std::function<void(Nanos)> sleep_until;  // returns at once when that is past
};

// `inner` with messages that take their time: one may go once both ends have started it and the
// message before it on the channel is there, and its receiver is told when `arrival` says so. Its
// sender is told when `inner` does. Lane::kControl is not paced. All workers of a job are paced, or
// none, with the same posts.
//
// Used by one thread, as `inner`; waits sleep by the clock, without the liveness check, for no
// longer than messages take.
std::unique_ptr<Transport> PaceTransport(std::unique_ptr<Transport> inner, MessagePosts posts,
                                         MessageArrival arrival, PaceClock clock);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_PACED_TRANSPORT_H_
