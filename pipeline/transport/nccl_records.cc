#include "pipeline/transport/nccl_records.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "pipeline/transport/nccl_options.h"
#include "planner/status.h"

namespace siphon {
namespace {

static_assert(sizeof(NcclRecord) <= static_cast<size_t>(kNcclRecordBytes.value));

// FNV-1a, which is the same on all machines.
uint64_t HashOf(const MessageSizes& sizes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const int64_t part : sizes.parts) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (static_cast<uint64_t>(part) >> (8 * byte) & 0xff)) * 0x100000001b3u;
    }
  }
  return hash;
}

}  // namespace

NcclRecord RecordOf(NcclRecord::Kind kind, Lane lane, int64_t number, const MessageSizes& sizes) {
  NcclRecord record{.kind = kind,
                    .lane = static_cast<int64_t>(lane),
                    .number = number,
                    .parts = static_cast<int64_t>(sizes.parts.size()),
                    .bytes = TotalBytes(sizes),
                    .hash = HashOf(sizes)};
  const size_t named = std::min(sizes.parts.size(), std::size(record.first));
  std::copy_n(sizes.parts.begin(), named, record.first);
  return record;
}

bool HasSizes(const NcclRecord& record, const MessageSizes& sizes) {
  return record.parts == static_cast<int64_t>(sizes.parts.size()) &&
         record.bytes == TotalBytes(sizes) && record.hash == HashOf(sizes);
}

absl::Status SizeMismatch(const Channel& channel, const NcclRecord& sent,
                          const MessageSizes& expected) {
  if (sent.parts <= NcclRecord::kPartsNamed) {
    return SizeMismatch(channel, MessageSizes{{sent.first, sent.first + sent.parts}}, expected);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(ToString(channel), ": the message has ", sent.parts, " parts of ", sent.bytes,
                   " bytes, the receiver expects ", ToString(expected)));
}

absl::Status NcclRecords::Listen(WorkerId peer) { return StartReceive(peer, incoming_[peer]); }

absl::Status NcclRecords::StartReceive(WorkerId from, Incoming& incoming) {
  const MutablePart bytes(reinterpret_cast<std::byte*>(&incoming.record), sizeof(NcclRecord));
  SIPHON_ASSIGN_OR_RETURN(incoming.transfer,
                          host_->StartReceive({from, me_, Lane::kForward}, {bytes}));
  return absl::OkStatus();
}

absl::Status NcclRecords::Send(WorkerId to, const NcclRecord& record) {
  Outgoing& outgoing = outgoing_.emplace_back(Outgoing{record, {}});
  const ConstPart bytes(reinterpret_cast<const std::byte*>(&outgoing.record), sizeof(NcclRecord));
  SIPHON_ASSIGN_OR_RETURN(outgoing.transfer, host_->StartSend({me_, to, Lane::kForward}, {bytes}));
  return absl::OkStatus();
}

absl::Status NcclRecords::Poll(
    const std::function<void(WorkerId from, const NcclRecord& record)>& take) {
  for (auto sent = outgoing_.begin(); sent != outgoing_.end();) {
    SIPHON_ASSIGN_OR_RETURN(const bool done, host_->Test(sent->transfer));
    sent = done ? outgoing_.erase(sent) : std::next(sent);
  }
  for (auto& [from, incoming] : incoming_) {
    while (true) {
      SIPHON_ASSIGN_OR_RETURN(const bool done, host_->Test(incoming.transfer));
      if (!done) break;
      const NcclRecord record = incoming.record;
      SIPHON_RETURN_IF_ERROR(StartReceive(from, incoming));
      take(from, record);
    }
  }
  return absl::OkStatus();
}

}  // namespace siphon
