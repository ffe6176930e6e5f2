#include "swap/device/cuda_way_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_status.h"

namespace siphon {

absl::StatusOr<std::unique_ptr<CudaWayQueue>> CudaWayQueue::Make(CopyLane lane, int device,
                                                                 const CudaWay& way,
                                                                 CudaEventPool* events) {
  SIPHON_CHECK(way.chunk > Bytes(0) && way.chunks_in_flight > 0, "a way moves something at a time");
  const CudaDeviceScope scope(device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  cudaStream_t stream = nullptr;
  // Does not wait for the legacy default stream, nor that for it.
  SIPHON_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                              absl::StrCat("making a stream for copies of device ", device));
  return std::unique_ptr<CudaWayQueue>(new CudaWayQueue(lane, device, way, events, stream));
}

CudaWayQueue::~CudaWayQueue() {
  static_cast<void>(cudaStreamSynchronize(stream_));
  for (const Chunk& chunk : chunks_) events_->GiveBack(chunk.event);
  static_cast<void>(cudaStreamDestroy(stream_));
  static_cast<void>(cudaGetLastError());
}

void CudaWayQueue::Add(CudaShare share) { shares_.push_back({.share = std::move(share)}); }

std::vector<FinishedShare> CudaWayQueue::Advance() {
  std::vector<FinishedShare> finished;
  Collect();
  while (static_cast<int>(chunks_.size()) < way_.chunks_in_flight) {
    Share* const next = Next();
    if (next == nullptr) break;
    Give(*next);
  }
  while (!shares_.empty() && shares_.front().GivenOut() && shares_.front().under_way == 0) {
    finished.push_back({shares_.front().share.copy, shares_.front().status});
    shares_.pop_front();
  }
  return finished;
}

void CudaWayQueue::Cut() {
  for (Share& share : shares_) {
    share.part = share.share.parts.size();
    share.status.Update(absl::CancelledError("the copy was given up"));
  }
}

CudaWayQueue::Share* CudaWayQueue::Next() {
  const auto next = std::find_if(shares_.begin(), shares_.end(),
                                 [](const Share& share) { return !share.GivenOut(); });
  return next == shares_.end() ? nullptr : &*next;
}

void CudaWayQueue::Give(Share& share) {
  Chunk chunk = {.link = share.share.parts[share.part].link};
  const size_t link = static_cast<size_t>(chunk.link.value);
  given_.resize(std::max(given_.size(), link + 1));
  chunk.number = given_[link]++;
  absl::Status given = Enqueue(share, chunk);
  if (given.ok()) {
    absl::StatusOr<cudaEvent_t> event = events_->Record(stream_);
    given = event.status();
    if (event.ok()) chunk.event = *event;
  }
  if (!given.ok()) {
    Fail(share, chunk, given);
    // What the stream did take of the chunk must be over before anybody hears of the error.
    if (chunk.bytes > 0) static_cast<void>(CudaStatus(cudaStreamSynchronize(stream_), ""));
    return;
  }
  chunks_.push_back(chunk);
  ++share.under_way;
}

// The parts of one link, or what of them fits into a chunk.
absl::Status CudaWayQueue::Enqueue(Share& share, Chunk& chunk) {
  const size_t most = static_cast<size_t>(way_.chunk.value);
  const std::vector<CopyPart>& parts = share.share.parts;
  while (share.part < parts.size() && chunk.bytes < most) {
    const CopyPart& part = parts[share.part];
    if (part.link != chunk.link) break;
    const size_t bytes = std::min(part.from.size() - share.in_part, most - chunk.bytes);
    const cudaError_t error =
        cudaMemcpyAsync(part.to.data() + share.in_part, part.from.data() + share.in_part, bytes,
                        cudaMemcpyDefault, stream_);
    if (error != cudaSuccess) {
      return CudaStatus(error, absl::StrCat("starting to copy ", bytes, " bytes"));
    }
    chunk.bytes += bytes;
    share.in_part += bytes;
    if (share.in_part < part.from.size()) continue;
    ++share.part;
    share.in_part = 0;
  }
  return absl::OkStatus();
}

void CudaWayQueue::Collect() {
  auto share = shares_.begin();
  while (!chunks_.empty()) {
    const Chunk chunk = chunks_.front();
    const absl::StatusOr<bool> fired = HasFired(chunk.event);
    if (fired.ok() && !*fired) return;
    while (share->under_way == 0) ++share;
    // After an error of the device nothing moves any more.
    if (!fired.ok()) Fail(*share, chunk, fired.status());
    --share->under_way;
    events_->GiveBack(chunk.event);
    chunks_.pop_front();
  }
}

void CudaWayQueue::Fail(Share& share, const Chunk& chunk, const absl::Status& status) const {
  share.part = share.share.parts.size();
  share.status.Update(Annotate(status, ToString(chunk)));
}

std::string CudaWayQueue::ToString(const Chunk& chunk) const {
  return absl::StrCat("device ", device_, ", copy ", lane_ == CopyLane::kOut ? "out" : "in",
                      ", link ", chunk.link.value, ", chunk ", chunk.number, " (", chunk.bytes,
                      " bytes)");
}

}  // namespace siphon
