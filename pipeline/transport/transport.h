#ifndef SIPHON_PIPELINE_TRANSPORT_TRANSPORT_H_
#define SIPHON_PIPELINE_TRANSPORT_TRANSPORT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/ids.h"

namespace siphon {

// Messages of different lanes never wait for each other.
enum class Lane { kForward, kBackward, kControl };
absl::string_view LaneName(Lane lane);  // "forward"

// One direction between two workers; messages on it arrive in the order in which they were sent.
struct Channel {
  WorkerId from;
  WorkerId to;
  Lane lane = Lane::kControl;
  friend auto operator<=>(const Channel&, const Channel&) = default;
};
// "worker 0 -> worker 1 (forward)".
std::string ToString(const Channel& channel);

// Names one started send or receive. Ids are not reused.
struct TransferId {
  int64_t value = 0;
};

using ConstPart = absl::Span<const std::byte>;
using MutablePart = absl::Span<std::byte>;

// Called in every wait, at least every few milliseconds; the first error ends the wait with it.
// That is how a lost peer, a failed peer or a deadline ends a wait that could last for ever.
using LivenessCheck = std::function<absl::Status()>;

// Asynchronous, ordered message passing between the workers of a job. A message is a list of spans
// (the tensors of one boundary); sender and receiver name the same number of bytes in total and
// part by part.
//
// Thread-safety: one thread per Transport object. Progress is made inside the calls only.
// Memory: a sender's spans must stay valid and unchanged until its transfer is done, a receiver's
// may be touched only from then on; spans of transfers that never finish (after an error) stay
// valid until the Transport is destroyed. Parts may be empty. Any size; a message may be larger
// than the transport's own buffers.
class Transport {
 public:
  virtual ~Transport() = default;

  // Enqueue and return. Errors: InvalidArgument if this worker is not the channel's end or the
  // channel does not exist.
  virtual absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                               std::vector<ConstPart> parts) = 0;
  virtual absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                                  std::vector<MutablePart> parts) = 0;

  // True once the transfer is done; makes progress on all transfers meanwhile. A transfer that was
  // reported done is forgotten; asking again is FailedPrecondition. Errors: FailedPrecondition at
  // the receiver (at the sender too if it still waits and can know) when the message has other
  // sizes than expected: both are named, and the channel carries nothing any more; Unavailable when
  // a peer is gone.
  virtual absl::StatusOr<bool> Test(TransferId transfer) = 0;

  // Blocks until done, yielding the processor. Errors: as Test, and whatever the liveness check
  // returns.
  virtual absl::Status Wait(TransferId transfer) = 0;

  // Whether the worker's device works on a message from when it is sent until its receive is
  // started. What waits for the whole device, as taking and giving back its memory may, waits for
  // the peer then; a peer that does the same never comes.
  virtual bool SendsKeepDeviceBusy() const { return false; }
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_TRANSPORT_H_
