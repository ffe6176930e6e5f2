#include "pipeline/transport/message_sizes.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

constexpr size_t kPartsShown = 8;  // enough for the boundary of any layer that people write

}  // namespace

int64_t TotalBytes(const MessageSizes& sizes) {
  return std::accumulate(sizes.parts.begin(), sizes.parts.end(), int64_t{0});
}

std::string ToString(const MessageSizes& sizes) {
  const size_t shown = std::min(sizes.parts.size(), kPartsShown);
  return absl::StrCat(sizes.parts.size(), sizes.parts.size() == 1 ? " part" : " parts", " of ",
                      TotalBytes(sizes), " bytes (",
                      absl::StrJoin(sizes.parts.begin(), sizes.parts.begin() + shown, ", "),
                      shown < sizes.parts.size() ? ", ...)" : ")");
}

absl::Status SizeMismatch(const Channel& channel, const MessageSizes& sent,
                          const MessageSizes& expected) {
  return absl::FailedPreconditionError(absl::StrCat(ToString(channel), ": the message has ",
                                                    ToString(sent), ", the receiver expects ",
                                                    ToString(expected)));
}

absl::Status CheckChannel(const Channel& channel, ChannelEnd end, WorkerId me, int workers) {
  const auto exists = [workers](WorkerId worker) {
    return worker.value >= 0 && worker.value < workers;
  };
  if (!exists(channel.from) || !exists(channel.to) || channel.from == channel.to) {
    return absl::InvalidArgumentError(absl::StrCat("no channel ", ToString(channel), " among ",
                                                   workers, workers == 1 ? " worker" : " workers"));
  }
  const bool sends = end == ChannelEnd::kSender;
  if ((sends ? channel.from : channel.to) != me) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", me.value, " cannot ", sends ? "send" : "receive", " on ", ToString(channel)));
  }
  return absl::OkStatus();
}

absl::Status UnknownTransfer(TransferId transfer) {
  return absl::FailedPreconditionError(absl::StrCat(
      "transfer ", transfer.value, " was never started here or was reported done before"));
}

}  // namespace siphon
