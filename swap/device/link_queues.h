#ifndef SIPHON_SWAP_DEVICE_LINK_QUEUES_H_
#define SIPHON_SWAP_DEVICE_LINK_QUEUES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "planner/units.h"
#include "swap/device/device_backend.h"

namespace siphon {

// How fast a link is in one direction.
struct CopyLinkRate {
  BytesPerSecond rate;  // 0: as fast as memory is
  Nanos latency;        // before the first byte of each copy
  friend bool operator==(const CopyLinkRate&, const CopyLinkRate&) = default;
};

// What a lane has to do next: move a chunk over a link, or, without parts, see the share of `copy`
// on that link through.
struct LinkTurn {
  CopyEvent copy;
  CopyLinkId link;
  Nanos time;         // not before
  int64_t chunk = 0;  // its number on the link, since the begin
  std::vector<CopyPart> parts;
};

// Books `bytes` of a link that may begin at `begin` on all that the link shares with others
// (SharedWays); says when they are through.
using BookLink = std::function<Nanos(CopyLinkId link, Bytes bytes, Nanos begin)>;

// The copies of one lane, queued at their links: each link takes one after the other, and all links
// work at the same time. Says when the next bytes may move so that no link is faster than its rate.
//
// Links keep the time that they would take on paper: a copy begins when it is there and the link is
// through with the copy before, each chunk when the one before has passed. Who comes late with a
// chunk may catch up; a copy is never through before its time on paper.
//
// Pure: knows no clock and moves nothing. Thread-safety: none.
class LinkQueues {
 public:
  // With `book`, each chunk also takes the time that it books, when its turn is; chunks of links
  // with a rate are then small enough for kMostBooked, so that workers take turns. Requires: chunk
  // is positive.
  LinkQueues(std::vector<CopyLinkRate> links, Bytes chunk, BookLink book = nullptr);
  static constexpr Nanos kMostBooked{5'000'000};

  // The share of a copy that runs over one link. Requires: the link exists, all parts are its own
  // and none is empty.
  void Add(CopyEvent copy, CopyLinkId link, std::vector<CopyPart> parts, Nanos now);
  // Takes what is to be done next, if its time has come: what is through first, then the link whose
  // turn is longest ago.
  std::optional<LinkTurn> Take(Nanos now);
  // Leaves out what has not been taken yet of a copy that is queued: it is through at once.
  void Cut(CopyEvent copy, Nanos now);
  // From the next chunk on the link is `factor` times slower than the rate that it was made with; a
  // link without a rate stays as it is. Requires: the factor is at least 1.
  void SlowDown(CopyLinkId link, double factor);
  // [link]: of the copies that were through since the last call, by the times that Take was called
  // with.
  std::vector<CopyLinkUse> TakeUse();

  // When the next turn is; none when no copy is queued.
  std::optional<Nanos> NextTime() const;

 private:
  struct Share {
    CopyEvent copy;
    std::vector<CopyPart> parts;
    Nanos added;
    Nanos begin;  // of its first byte; known once it is the first of its link
    Bytes bytes;  // in all
    Bytes moved;
    size_t part = 0;     // where the next chunk begins
    size_t in_part = 0;  // bytes into it
  };
  struct Link {
    CopyLinkRate speed;
    std::deque<Share> shares;
    double slowness = 1;
    Nanos free;       // when the last share was through
    Nanos seen_free;  // and when that was seen
    CopyLinkUse use;
    Nanos next;          // turn, where there are shares
    int64_t chunks = 0;  // taken
    int64_t last_turn = 0;
  };

  void Begin(Link& link) const;
  Bytes ChunkOf(const Link& link) const;
  std::vector<CopyPart> TakeChunk(Share& share, Bytes most) const;
  Nanos EndOfChunk(const Link& link, CopyLinkId id, Bytes chunk) const;

  const Bytes chunk_;
  const BookLink book_;
  std::vector<Link> links_;
  int64_t turns_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_LINK_QUEUES_H_
