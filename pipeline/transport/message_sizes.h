#ifndef SIPHON_PIPELINE_TRANSPORT_MESSAGE_SIZES_H_
#define SIPHON_PIPELINE_TRANSPORT_MESSAGE_SIZES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// The bytes of each part of a message: what sender and receiver must agree on.
struct MessageSizes {
  std::vector<int64_t> parts;
  friend bool operator==(const MessageSizes&, const MessageSizes&) = default;
};

template <typename Part>
MessageSizes SizesOf(const std::vector<Part>& parts) {
  MessageSizes sizes;
  sizes.parts.reserve(parts.size());
  for (const Part& part : parts) sizes.parts.push_back(static_cast<int64_t>(part.size()));
  return sizes;
}

int64_t TotalBytes(const MessageSizes& sizes);
// "2 parts of 128 bytes (64, 64)"; long lists are cut.
std::string ToString(const MessageSizes& sizes);

// FailedPrecondition that names the channel and both sizes.
absl::Status SizeMismatch(const Channel& channel, const MessageSizes& sent,
                          const MessageSizes& expected);

enum class ChannelEnd { kSender, kReceiver };

// Errors: InvalidArgument unless `me` is that end of `channel` and both ends are different workers
// below `workers`.
absl::Status CheckChannel(const Channel& channel, ChannelEnd end, WorkerId me, int workers);
// FailedPrecondition for an id that was never given out or was reported done before.
absl::Status UnknownTransfer(TransferId transfer);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_MESSAGE_SIZES_H_
