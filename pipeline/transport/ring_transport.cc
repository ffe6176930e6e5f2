#include "pipeline/transport/ring_transport.h"

#include <sched.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pipeline/transport/byte_ring.h"
#include "pipeline/transport/doorbell.h"
#include "pipeline/transport/message_sizes.h"
#include "pipeline/transport/paced_check.h"
#include "planner/round_up.h"

namespace siphon {
namespace {

constexpr int64_t kAlignment = 64;
// Looks at the rings, with a sched_yield between two, before a wait sleeps. The answer to a message
// takes a few microseconds when its sender runs on another core; a yield takes about half of one.
constexpr int kYieldsBeforeSleep = 16;

int64_t Aligned(int64_t bytes) { return RoundUp(Bytes(bytes), Bytes(kAlignment)).value; }

int WorkerCount(const std::vector<RingSpec>& rings) {
  int count = 0;
  for (const RingSpec& ring : rings) {
    count = std::max({count, ring.channel.from.value + 1, ring.channel.to.value + 1});
  }
  return count;
}

// On the wire a message is a stream of bytes, padded to the alignment in front of the parts and at
// its end: total bytes, number of parts, bytes of each part | the parts, one behind the other.
struct Transfer {
  MessageSizes sizes;
  std::vector<ConstPart> source;         // of a send
  std::vector<MutablePart> destination;  // of a receive
  std::vector<uint64_t> head;            // the wire's first part, sent or received
  size_t segment = 0;                    // 0 the head, then the parts, then the padding at the end
  int64_t offset = 0;                    // in that segment
  bool done = false;
  absl::Status status;
};

size_t HeadBytes(const Transfer& transfer) {
  return static_cast<size_t>(
      Aligned(static_cast<int64_t>((2 + transfer.sizes.parts.size()) * sizeof(uint64_t))));
}

int64_t EndPadding(const Transfer& transfer) {
  const int64_t total = TotalBytes(transfer.sizes);
  return Aligned(total) - total;
}

// A channel seen from one end, with its started transfers in order.
struct Line {
  Channel channel;
  ByteRing ring;
  Doorbell* peer_bell;
  std::deque<Transfer*> queue;
  bool busy = false;  // stands in RingTransport::busy_
  absl::Status broken;
};

class RingTransport final : public Transport {
 public:
  RingTransport(WorkerId me, const RingLayout& layout, std::byte* base, LivenessCheck check)
      : me_(me), workers_(WorkerCount(layout.rings)), check_(std::move(check)) {
    auto* bells = reinterpret_cast<Doorbell*>(base);
    my_bell_ = bells + me.value;
    for (size_t ring = 0; ring < layout.rings.size(); ++ring) {
      const RingSpec& spec = layout.rings[ring];
      if (spec.channel.from != me && spec.channel.to != me) continue;
      const WorkerId peer = spec.channel.from == me ? spec.channel.to : spec.channel.from;
      auto* header = reinterpret_cast<RingHeader*>(base + layout.offsets[ring]);
      lines_.emplace(spec.channel, Line{.channel = spec.channel,
                                        .ring = ByteRing(header, spec.capacity.value),
                                        .peer_bell = bells + peer.value});
    }
  }

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    auto transfer = std::make_unique<Transfer>();
    transfer->sizes = SizesOf(parts);
    transfer->source = std::move(parts);
    transfer->head.resize(HeadBytes(*transfer) / sizeof(uint64_t));
    transfer->head[0] = static_cast<uint64_t>(TotalBytes(transfer->sizes));
    transfer->head[1] = transfer->sizes.parts.size();
    std::copy(transfer->sizes.parts.begin(), transfer->sizes.parts.end(),
              transfer->head.begin() + 2);
    return Start(channel, ChannelEnd::kSender, std::move(transfer));
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    auto transfer = std::make_unique<Transfer>();
    transfer->sizes = SizesOf(parts);
    transfer->destination = std::move(parts);
    transfer->head.resize(HeadBytes(*transfer) / sizeof(uint64_t));
    return Start(channel, ChannelEnd::kReceiver, std::move(transfer));
  }

  absl::StatusOr<bool> Test(TransferId id) override {
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    Progress();
    if (!found->second->done) return false;
    const absl::Status status = std::move(found->second->status);
    transfers_.erase(found);
    if (!status.ok()) return status;
    return true;
  }

  absl::Status Wait(TransferId id) override {
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    const Transfer& transfer = *found->second;
    Progress();
    for (int idle = 0; !transfer.done;) {
      if (absl::Status alive = check_.CheckIfDue(); !alive.ok()) return alive;
      if (idle++ < kYieldsBeforeSleep) {
        sched_yield();
        if (Progress()) idle = 0;
        continue;
      }
      const uint32_t prepared = PrepareToSleep(*my_bell_);
      if (Progress()) {
        StayAwake(*my_bell_);
        idle = 0;
      } else {
        Sleep(*my_bell_, prepared, kLivenessInterval);
        if (Progress()) idle = 0;
      }
    }
    const absl::Status status = transfer.status;
    transfers_.erase(found);
    return status;
  }

 private:
  absl::StatusOr<TransferId> Start(const Channel& channel, ChannelEnd end,
                                   std::unique_ptr<Transfer> transfer) {
    if (absl::Status valid = CheckChannel(channel, end, me_, workers_); !valid.ok()) return valid;
    const auto found = lines_.find(channel);
    if (found == lines_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no ring was laid out for ", ToString(channel),
                                                     "; worker ", me_.value, " has ", lines_.size(),
                                                     " rings"));
    }
    Line& line = found->second;
    line.queue.push_back(transfer.get());
    const TransferId id{next_id_++};
    transfers_.emplace(id.value, std::move(transfer));
    Advance(line);
    if (!line.busy && !line.queue.empty()) {
      line.busy = true;
      busy_.push_back(&line);
    }
    return id;
  }

  // Moves what can be moved on all lines; whether anything was.
  bool Progress() {
    bool moved = false;
    for (size_t index = 0; index < busy_.size();) {
      Line& line = *busy_[index];
      moved |= Advance(line);
      if (line.queue.empty()) {
        line.busy = false;
        busy_[index] = busy_.back();
        busy_.pop_back();
      } else {
        ++index;
      }
    }
    return moved;
  }

  bool Advance(Line& line) {
    bool moved = false;
    while (!line.queue.empty()) {
      Transfer& transfer = *line.queue.front();
      if (line.broken.ok()) {
        moved |=
            line.channel.from == me_ ? AdvanceSend(line, transfer) : AdvanceReceive(line, transfer);
      }
      if (!line.broken.ok()) {
        transfer.status = line.broken;
        transfer.done = moved = true;
      }
      if (!transfer.done) break;
      line.queue.pop_front();
    }
    if (moved) Ring(*line.peer_bell);
    return moved;
  }

  // Both return whether bytes were moved, and set `done` at the message's end.
  bool AdvanceSend(Line& line, Transfer& transfer) {
    static constexpr std::byte kPadding[kAlignment] = {};
    const size_t end = transfer.source.size() + 1;
    bool moved = false;
    if (line.ring.refused()) {
      line.broken = absl::FailedPreconditionError(
          absl::StrCat(ToString(line.channel), ": the receiver expected a message of other sizes; ",
                       "under way was one of ", ToString(transfer.sizes)));
      return moved;
    }
    for (; transfer.segment <= end; ++transfer.segment, transfer.offset = 0) {
      ConstPart bytes;
      if (transfer.segment == 0) {
        bytes = ConstPart(reinterpret_cast<const std::byte*>(transfer.head.data()),
                          HeadBytes(transfer));
      } else if (transfer.segment < end) {
        bytes = transfer.source[transfer.segment - 1];
      } else {
        bytes = ConstPart(kPadding, static_cast<size_t>(EndPadding(transfer)));
      }
      const int64_t written = line.ring.Write(bytes.subspan(static_cast<size_t>(transfer.offset)));
      moved |= written > 0;
      transfer.offset += written;
      if (transfer.offset < static_cast<int64_t>(bytes.size())) return moved;
    }
    transfer.done = true;
    return moved;
  }

  bool AdvanceReceive(Line& line, Transfer& transfer) {
    const size_t end = transfer.destination.size() + 1;
    bool moved = false;
    for (; transfer.segment < end; ++transfer.segment, transfer.offset = 0) {
      const MutablePart bytes =
          transfer.segment == 0
              ? MutablePart(reinterpret_cast<std::byte*>(transfer.head.data()), HeadBytes(transfer))
              : transfer.destination[transfer.segment - 1];
      const int64_t read = line.ring.Read(bytes.subspan(static_cast<size_t>(transfer.offset)));
      moved |= read > 0;
      transfer.offset += read;
      if (transfer.segment == 0) {
        line.broken = CheckHead(line.channel, transfer);
        if (!line.broken.ok()) {
          line.ring.Refuse();
          return moved;
        }
      }
      if (transfer.offset < static_cast<int64_t>(bytes.size())) return moved;
    }
    const int64_t skipped = line.ring.Skip(EndPadding(transfer) - transfer.offset);
    moved |= skipped > 0;
    transfer.offset += skipped;
    transfer.done = transfer.offset == EndPadding(transfer);
    return moved;
  }

  // Compares as much of the head as has come: a head of another length must not be waited for.
  static absl::Status CheckHead(const Channel& channel, const Transfer& transfer) {
    const size_t words = static_cast<size_t>(transfer.offset) / sizeof(uint64_t);
    const std::vector<int64_t>& expected = transfer.sizes.parts;
    if (words < 2) return absl::OkStatus();
    if (transfer.head[1] != expected.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          ToString(channel), ": the message has ", transfer.head[1], " parts of ", transfer.head[0],
          " bytes, the receiver expects ", ToString(transfer.sizes)));
    }
    if (words < 2 + expected.size()) return absl::OkStatus();
    MessageSizes sent;
    for (size_t part = 0; part < expected.size(); ++part) {
      sent.parts.push_back(static_cast<int64_t>(transfer.head[2 + part]));
    }
    if (sent == transfer.sizes) return absl::OkStatus();
    return SizeMismatch(channel, sent, transfer.sizes);
  }

  const WorkerId me_;
  const int workers_;
  PacedCheck check_;
  Doorbell* my_bell_ = nullptr;
  std::map<Channel, Line> lines_;
  std::vector<Line*> busy_;  // with a transfer in the queue
  int64_t next_id_ = 1;
  absl::flat_hash_map<int64_t, std::unique_ptr<Transfer>> transfers_;
};

absl::Status CheckLayout(WorkerId me, absl::Span<std::byte> region, const RingLayout& layout) {
  if (me.value < 0 || (me.value > 0 && me.value >= WorkerCount(layout.rings))) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", me.value, " is at no end of the ", layout.rings.size(), " rings"));
  }
  if (static_cast<int64_t>(region.size()) < layout.region_bytes.value) {
    return absl::InvalidArgumentError(absl::StrCat("the rings need ", layout.region_bytes.value,
                                                   " shared bytes, the region has ",
                                                   region.size()));
  }
  std::set<Channel> seen;
  for (const RingSpec& ring : layout.rings) {
    const WorkerId from = ring.channel.from;
    if (absl::Status valid =
            CheckChannel(ring.channel, ChannelEnd::kSender, from, WorkerCount(layout.rings));
        !valid.ok()) {
      return valid;
    }
    if (!seen.insert(ring.channel).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two rings were laid out for ", ToString(ring.channel)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

RingLayout LayOutRings(std::vector<RingSpec> rings) {
  RingLayout layout;
  int64_t offset = std::max(WorkerCount(rings), 1) * static_cast<int64_t>(sizeof(Doorbell));
  for (RingSpec& ring : rings) {
    ring.capacity = Bytes(Aligned(std::max<int64_t>(ring.capacity.value, 1)));
    layout.offsets.push_back(offset);
    offset += static_cast<int64_t>(sizeof(RingHeader)) + ring.capacity.value;
  }
  layout.rings = std::move(rings);
  layout.region_bytes = Bytes(offset + kAlignment);
  return layout;
}

absl::StatusOr<std::unique_ptr<Transport>> MakeRingTransport(WorkerId me,
                                                             absl::Span<std::byte> region,
                                                             RingLayout layout,
                                                             LivenessCheck check) {
  if (absl::Status valid = CheckLayout(me, region, layout); !valid.ok()) return valid;
  const int64_t misaligned =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(region.data())) % kAlignment;
  std::byte* base = region.data() + (kAlignment - misaligned) % kAlignment;
  return std::make_unique<RingTransport>(me, layout, base, std::move(check));
}

}  // namespace siphon
