#ifndef SIPHON_SWAP_DEVICE_CPU_BACKEND_H_
#define SIPHON_SWAP_DEVICE_CPU_BACKEND_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/units.h"
#include "swap/device/copy_clock.h"
#include "swap/device/device_backend.h"
#include "swap/device/link_queues.h"

namespace siphon {

// A chunk that is about to move.
struct CopyChunk {
  CopyLane lane = CopyLane::kOut;
  CopyLinkId link;
  int64_t number = 0;  // on that link in that lane, from 0
  Bytes bytes;
};

// The link to the worker's drive.
struct DriveLink {
  CopyLinkId link;
  // Moves parts, each with one side on the drive, and returns when they are moved. Called by one
  // thread a lane. Errors: Internal, naming the place.
  std::function<absl::Status(CopyLane lane, absl::Span<const CopyPart> parts)> move;
};

struct CpuBackendOptions {
  std::vector<CopyLinkRate> links;  // CopyLinkId is the place in here; the same in both directions
  double scale = 1;                 // links run at their rates times this; latencies stay
  Bytes chunk{8 << 20};             // chosen so that a link that is ready waits about 1 ms at most
  CopyClock clock = SteadyCopyClock();
  // As BookLink, of a lane; called by the lane's thread. Null: links share nothing.
  std::function<Nanos(CopyLane lane, CopyLinkId link, Bytes bytes, Nanos begin)> book;
  std::optional<DriveLink> drive;  // parts have a side on the drive over that link, and no other
  // For tests: called by the lane's threads before each chunk; an error fails the copy with
  // Internal, naming lane, link and chunk, and the rest of it is left out.
  std::function<absl::Status(const CopyChunk&)> before_chunk;
};

// Copies by two threads, one a lane, chunk by chunk in turn over all links that have something to
// move, no link faster than its rate; the drive has two of its own, as memory does not wait for it.
// A link that is through with its share of one copy goes on with the next one that uses it: copies
// over different links overlap, and may end in another order than they began. Threads sleep when
// there is nothing to move, and until a link may go on.
//
// What links share with each other, in this process or in others, is held by `book`.
//
// Thread-safety: one thread, the worker's. The destructor ends copies that are under way after the
// chunk that moves, and forgets the rest.
class CpuBackend final : public DeviceBackend {
 public:
  // Requires: scale and chunk are positive.
  explicit CpuBackend(CpuBackendOptions options);
  ~CpuBackend() override;
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  // Requires: the spans of a part have one size, and its link exists. At most 2^31 in all.
  CopyEvent StartCopy(CopyLane lane, std::vector<CopyPart> parts) override;
  absl::StatusOr<bool> Test(CopyEvent event) override;
  absl::Status Wait(CopyEvent event) override;
  void Abort() override;

  // Of both lanes. A link without a rate stays as it is.
  void SlowDown(CopyLinkId link, double factor) override;
  std::vector<CopyLinkUse> TakeUse() override;

 private:
  struct Lane {
    Lane(CopyLane copies, const CpuBackendOptions& options);
    const CopyLane lane;
    LinkQueues queues;
    std::condition_variable wake;
    std::thread thread;
  };
  // A copy that is not complete.
  struct Pending {
    int shares = 0;  // links that still have something of it
    absl::Status status;
  };

  bool IsDrive(CopyLinkId link) const {
    return options_.drive.has_value() && options_.drive->link == link;
  }
  Lane& LaneOf(CopyLane lane, CopyLinkId link) {
    return lanes_[static_cast<size_t>(lane) + (IsDrive(link) ? 2 : 0)];
  }
  void Run(Lane& own);
  absl::Status Move(CopyLane lane, const LinkTurn& turn) const;
  void Settle(const LinkTurn& turn, const absl::Status& moved)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> TestLocked(CopyEvent event) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CpuBackendOptions options_;
  std::mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int started_ ABSL_GUARDED_BY(mutex_) = 0;  // copies; events are their numbers
  absl::flat_hash_map<int, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, absl::Status> failed_ ABSL_GUARDED_BY(mutex_);
  std::condition_variable completed_;
  // Out and in, then those of the drive, which have threads where there is one; queues guarded by
  // mutex_.
  std::array<Lane, 4> lanes_;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CPU_BACKEND_H_
