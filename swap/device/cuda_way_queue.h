#ifndef SIPHON_SWAP_DEVICE_CUDA_WAY_QUEUE_H_
#define SIPHON_SWAP_DEVICE_CUDA_WAY_QUEUE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/units.h"
#include "swap/device/cuda_events.h"
#include "swap/device/cuda_options.h"
#include "swap/device/device_backend.h"

namespace siphon {

// What one copy moves over one way.
struct CudaShare {
  CopyEvent copy;
  std::vector<CopyPart> parts;  // in memory; none is empty
};

struct FinishedShare {
  CopyEvent copy;
  absl::Status status;
};

// The copies of one lane over one way: streams of its own, which have few chunks at a time, so that
// what others copy over the same engine gets in between.
//
// Thread-safety: one thread, whose current device is the way's.
class CudaWayQueue {
 public:
  // `options` and `events` outlive it.
  static absl::StatusOr<std::unique_ptr<CudaWayQueue>> Make(CopyLane lane, const CudaWay& way,
                                                            const CudaBackendOptions& options,
                                                            CudaEventPool* events);
  // Waits for the chunks that are under way.
  ~CudaWayQueue();
  CudaWayQueue(const CudaWayQueue&) = delete;
  CudaWayQueue& operator=(const CudaWayQueue&) = delete;

  void Add(CudaShare share);
  // Gives the stream what it may have now, and returns the shares that are through, in order: those
  // whose chunks are all complete. A share whose chunk fails ends with what is under way of it.
  std::vector<FinishedShare> Advance();
  // Leaves out all that has not been given to the stream; shares end as Cancelled.
  void Cut();

  // What went over the way's links since the last call, by link: bytes and time of chunks that are
  // through, copies of which any is. A chunk takes from when the stream had it, and the one before
  // it was found through, until it is: what other links of the way take is not in it.
  std::map<CopyLinkId, CopyLinkUse> TakeUse() { return std::exchange(use_, {}); }
  // As DeviceBackend::SlowDown: chunks count as through so much later.
  void SlowDown(CopyLinkId link, double factor) { slowness_[link] = factor; }

  bool empty() const { return shares_.empty(); }

 private:
  struct Share {
    CudaShare share;
    size_t part = 0;             // where the next chunk begins
    size_t in_part = 0;          // bytes into it
    int under_way = 0;           // chunks
    std::set<CopyLinkId> links;  // that it has had chunks for
    absl::Status status;
    bool GivenOut() const { return part == share.parts.size(); }
  };
  struct Chunk {
    cudaEvent_t event = nullptr;
    CopyLinkId link;
    int64_t number = 0;
    size_t bytes = 0;
    bool first = false;  // of its share over that link
    Nanos given;
    std::optional<Nanos> fired;
    uint64_t range = 0;  // that a profiler shows
  };

  CudaWayQueue(CopyLane lane, const CudaWay& way, const CudaBackendOptions& options,
               CudaEventPool* events)
      : lane_(lane), way_(way), options_(options), events_(events) {}

  absl::Status MakeStreams();
  cudaStream_t NextStream() const { return streams_[given_out_ % streams_.size()]; }

  // The first share that has something left for the stream; null: none.
  Share* Next();
  void Give(Share& share);
  absl::Status Enqueue(Share& share, Chunk& chunk);
  size_t ChunkBytes(const Share& share) const;
  void Collect();
  bool IsHeldBack(Chunk& chunk, Nanos now) const;
  void Count(const Chunk& chunk, Nanos now);
  void Fail(Share& share, const Chunk& chunk, const absl::Status& status) const;
  std::string ToString(const Chunk& chunk) const;

  const CopyLane lane_;
  const CudaWay way_;
  const CudaBackendOptions& options_;
  CudaEventPool* const events_;
  std::vector<cudaStream_t> streams_;  // that chunks go to in turn
  size_t given_out_ = 0;               // chunks so far
  std::deque<Share> shares_;           // those that have chunks under way come first
  std::deque<Chunk> chunks_;    // under way, as they were given: of the shares in their order
  std::vector<int64_t> given_;  // [link]: chunks so far
  Nanos free_;                  // when the last chunk was found through
  std::map<CopyLinkId, CopyLinkUse> use_;
  std::map<CopyLinkId, double> slowness_;  // those that are slow
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_WAY_QUEUE_H_
