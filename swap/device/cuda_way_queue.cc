#include "swap/device/cuda_way_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_ranges.h"
#include "swap/device/cuda_status.h"

namespace siphon {

namespace {

Nanos Now() {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
                   .count());
}

absl::string_view NameOf(CopyLane lane) { return lane == CopyLane::kOut ? "copy out" : "copy in"; }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaWayQueue>> CudaWayQueue::Make(CopyLane lane, const CudaWay& way,
                                                                 const CudaBackendOptions& options,
                                                                 CudaEventPool* events) {
  SIPHON_CHECK(way.chunk > Bytes(0) && way.chunks_in_flight > 0 && way.streams > 0,
               "a way moves something at a time");
  const CudaDeviceScope scope(options.device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  std::unique_ptr<CudaWayQueue> queue(new CudaWayQueue(lane, way, options, events));
  SIPHON_RETURN_IF_ERROR(queue->MakeStreams());
  return queue;
}

absl::Status CudaWayQueue::MakeStreams() {
  for (int made = 0; made < way_.streams; ++made) {
    cudaStream_t stream = nullptr;
    // Does not wait for the legacy default stream, nor that for it.
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
        absl::StrCat("making a stream for copies of device ", options_.device));
    NameStream(stream, absl::StrCat(NameOf(lane_), ", device ", options_.device));
    streams_.push_back(stream);
  }
  return absl::OkStatus();
}

CudaWayQueue::~CudaWayQueue() {
  for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamSynchronize(stream));
  for (const Chunk& chunk : chunks_) {
    EndCopyRange(chunk.range);
    events_->GiveBack(chunk.event);
  }
  for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
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
  chunk.first = share.links.insert(chunk.link).second;
  absl::Status given;
  if (options_.before_chunk) {
    given = options_.before_chunk(
        {lane_, chunk.link, chunk.number, Bytes(static_cast<int64_t>(ChunkBytes(share)))});
  }
  chunk.given = Now();
  if (given.ok()) given = Enqueue(share, chunk);
  if (given.ok()) {
    absl::StatusOr<cudaEvent_t> event = events_->Record(NextStream());
    given = event.status();
    if (event.ok()) chunk.event = *event;
  }
  if (!given.ok()) {
    Fail(share, chunk, given);
    // What the stream did take of the chunk must be over before anybody hears of the error.
    if (chunk.bytes > 0) static_cast<void>(CudaStatus(cudaStreamSynchronize(NextStream()), ""));
    return;
  }
  if (RangesOfProfiler() != nullptr) {
    chunk.range = BeginCopyRange(absl::StrCat(NameOf(lane_), ", link ", chunk.link.value),
                                 static_cast<int64_t>(chunk.bytes));
  }
  chunks_.push_back(chunk);
  ++given_out_;
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
                        cudaMemcpyDefault, NextStream());
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

// What Enqueue will give to the stream.
size_t CudaWayQueue::ChunkBytes(const Share& share) const {
  const size_t most = static_cast<size_t>(way_.chunk.value);
  const std::vector<CopyPart>& parts = share.share.parts;
  size_t bytes = 0, before = share.in_part;
  for (size_t part = share.part; part < parts.size() && bytes < most; ++part) {
    if (parts[part].link != parts[share.part].link) break;
    bytes += parts[part].from.size() - std::exchange(before, 0);
  }
  return std::min(bytes, most);
}

void CudaWayQueue::Collect() {
  auto share = shares_.begin();
  while (!chunks_.empty()) {
    const absl::StatusOr<bool> fired = HasFired(chunks_.front().event);
    if (fired.ok() && !*fired) return;
    const Nanos now = Now();
    if (fired.ok() && IsHeldBack(chunks_.front(), now)) return;
    EndCopyRange(chunks_.front().range);
    Count(chunks_.front(), now);
    const Chunk chunk = chunks_.front();
    while (share->under_way == 0) ++share;
    // After an error of the device nothing moves any more.
    if (!fired.ok()) Fail(*share, chunk, fired.status());
    --share->under_way;
    events_->GiveBack(chunk.event);
    chunks_.pop_front();
  }
}

bool CudaWayQueue::IsHeldBack(Chunk& chunk, Nanos now) const {
  const auto slow = slowness_.find(chunk.link);
  if (slow == slowness_.end()) return false;
  if (!chunk.fired.has_value()) chunk.fired = now;
  const Nanos begin = std::max(chunk.given, free_);
  const double taken = static_cast<double>((*chunk.fired - begin).value);
  return now - begin < Nanos(static_cast<int64_t>(taken * slow->second));
}

void CudaWayQueue::Count(const Chunk& chunk, Nanos now) {
  CopyLinkUse& use = use_[chunk.link];
  if (chunk.first) ++use.copies;
  use.bytes += Bytes(static_cast<int64_t>(chunk.bytes));
  use.time += now - std::max(chunk.given, free_);
  free_ = now;
}

void CudaWayQueue::Fail(Share& share, const Chunk& chunk, const absl::Status& status) const {
  share.part = share.share.parts.size();
  share.status.Update(Annotate(status, ToString(chunk)));
}

std::string CudaWayQueue::ToString(const Chunk& chunk) const {
  return absl::StrCat("device ", options_.device, ", ", NameOf(lane_), ", link ", chunk.link.value,
                      ", chunk ", chunk.number, " (", chunk.bytes, " bytes)");
}

}  // namespace siphon
