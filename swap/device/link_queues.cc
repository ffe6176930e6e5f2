#include "swap/device/link_queues.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/status.h"
#include "swap/device/shared_ways.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr Bytes kLeastChunk{4096};

BytesPerSecond SlowedRate(BytesPerSecond rate, double slowness) {
  if (rate.value == 0 || slowness == 1) return rate;
  const double slowed = static_cast<double>(rate.value) / slowness;
  return BytesPerSecond(std::max(static_cast<int64_t>(slowed), int64_t{1}));
}

}  // namespace

LinkQueues::LinkQueues(std::vector<CopyLinkRate> links, Bytes chunk, BookLink book)
    : chunk_(chunk), book_(std::move(book)) {
  SIPHON_CHECK(chunk > Bytes(0), "chunks have bytes");
  for (const CopyLinkRate& speed : links) links_.push_back({.speed = speed});
}

void LinkQueues::Add(CopyEvent copy, CopyLinkId link, std::vector<CopyPart> parts, Nanos now) {
  Link& at = links_[static_cast<size_t>(link.value)];
  Bytes bytes;
  for (const CopyPart& part : parts) bytes += Bytes(static_cast<int64_t>(part.from.size()));
  at.shares.push_back({.copy = copy, .parts = std::move(parts), .added = now, .bytes = bytes});
  if (at.shares.size() == 1) Begin(at);
}

void LinkQueues::Begin(Link& link) const {
  Share& share = link.shares.front();
  share.begin = std::max(share.added, link.free);
  if (!share.parts.empty()) share.begin += link.speed.latency;
  link.next = share.begin;
}

std::optional<LinkTurn> LinkQueues::Take(Nanos now) {
  const auto is_through = [](const Link& link) {
    return link.shares.front().part == link.shares.front().parts.size();
  };
  Link* first = nullptr;
  for (Link& link : links_) {
    if (link.shares.empty() || link.next > now) continue;
    const auto order = [&](const Link& l) { return std::pair(!is_through(l), l.last_turn); };
    if (first == nullptr || order(link) < order(*first)) first = &link;
  }
  if (first == nullptr) return std::nullopt;
  first->last_turn = ++turns_;
  Share& share = first->shares.front();
  LinkTurn turn = {.copy = share.copy,
                   .link = CopyLinkId(static_cast<int>(first - links_.data())),
                   .time = first->next};
  if (!is_through(*first)) {
    turn.chunk = first->chunks++;
    const Bytes before = share.moved;
    turn.parts = TakeChunk(share, ChunkOf(*first));
    first->next = EndOfChunk(*first, turn.link, share.moved - before);
    return turn;
  }
  ++first->use.copies;
  first->use.bytes += share.bytes;
  first->use.time += now - std::max(share.added, first->seen_free);
  first->seen_free = now;
  first->free = first->next;
  first->shares.pop_front();
  if (!first->shares.empty()) Begin(*first);
  return turn;
}

Bytes LinkQueues::ChunkOf(const Link& link) const {
  if (book_ == nullptr || link.speed.rate.value == 0) return chunk_;
  const double booked = static_cast<double>(link.speed.rate.value) *
                        static_cast<double>(kMostBooked.value) / kNanosPerSecond;
  return std::clamp(Bytes(static_cast<int64_t>(booked)), std::min(kLeastChunk, chunk_), chunk_);
}

// Of the first share, `chunk` of which has just been taken.
Nanos LinkQueues::EndOfChunk(const Link& link, CopyLinkId id, Bytes chunk) const {
  const Share& share = link.shares.front();
  const BytesPerSecond rate = SlowedRate(link.speed.rate, link.slowness);
  // From the sum, so that rounding does not add up.
  if (book_ == nullptr) return share.begin + MovingTime(share.moved, rate);
  return std::max(link.next + MovingTime(chunk, rate), book_(id, chunk, link.next));
}

std::vector<CopyPart> LinkQueues::TakeChunk(Share& share, Bytes most) const {
  std::vector<CopyPart> chunk;
  size_t left = static_cast<size_t>(most.value);
  while (left > 0 && share.part < share.parts.size()) {
    const CopyPart& part = share.parts[share.part];
    const size_t bytes = std::min(left, part.from.size() - share.in_part);
    chunk.push_back({part.from.subspan(share.in_part, bytes), part.to.subspan(share.in_part, bytes),
                     part.link});
    share.moved += Bytes(static_cast<int64_t>(bytes));
    share.in_part += bytes;
    left -= bytes;
    if (share.in_part < part.from.size()) break;
    ++share.part;
    share.in_part = 0;
  }
  return chunk;
}

void LinkQueues::Cut(CopyEvent copy, Nanos now) {
  for (Link& link : links_) {
    for (Share& share : link.shares) {
      if (share.copy != copy) continue;
      share.parts.clear();
      share.part = 0;
      if (&share == &link.shares.front()) link.next = std::min(link.next, now);
    }
  }
}

void LinkQueues::SlowDown(CopyLinkId link, double factor) {
  SIPHON_CHECK(factor >= 1, "links are slowed down, not made faster");
  links_[static_cast<size_t>(link.value)].slowness = factor;
}

std::vector<CopyLinkUse> LinkQueues::TakeUse() {
  std::vector<CopyLinkUse> uses;
  for (Link& link : links_) uses.push_back(std::exchange(link.use, {}));
  return uses;
}

std::optional<Nanos> LinkQueues::NextTime() const {
  std::optional<Nanos> next;
  for (const Link& link : links_) {
    if (!link.shares.empty() && (!next.has_value() || link.next < *next)) next = link.next;
  }
  return next;
}

}  // namespace siphon
