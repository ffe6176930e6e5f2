#include "swap/device/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/stream_copy.h"

namespace siphon {
namespace {

std::vector<CopyLinkRate> Scaled(std::vector<CopyLinkRate> links, double scale) {
  SIPHON_CHECK(scale > 0, "links have a positive scale");
  for (CopyLinkRate& link : links) {
    if (link.rate.value == 0) continue;
    const double rate = std::round(static_cast<double>(link.rate.value) * scale);
    link.rate = BytesPerSecond(std::max(static_cast<int64_t>(rate), int64_t{1}));
  }
  return links;
}

LinkQueues QueuesOf(const CpuBackendOptions& options, CopyLane lane) {
  BookLink book;
  if (options.book != nullptr) {
    book = [book = options.book, lane](CopyLinkId link, Bytes bytes, Nanos begin) {
      return book(lane, link, bytes, begin);
    };
  }
  return LinkQueues(Scaled(options.links, options.scale), options.chunk, std::move(book));
}

std::string ToString(const CopyChunk& chunk) {
  return absl::StrCat("copy ", chunk.lane == CopyLane::kOut ? "out" : "in", ", link ",
                      chunk.link.value, ", chunk ", chunk.number, " (", chunk.bytes.value,
                      " bytes)");
}

}  // namespace

CpuBackend::Lane::Lane(CopyLane copies, const CpuBackendOptions& options)
    : lane(copies), queues(QueuesOf(options, copies)) {}

CpuBackend::CpuBackend(CpuBackendOptions options)
    : options_(std::move(options)),
      lanes_{Lane(CopyLane::kOut, options_), Lane(CopyLane::kIn, options_),
             Lane(CopyLane::kOut, options_), Lane(CopyLane::kIn, options_)} {
  const size_t lanes = options_.drive.has_value() ? 4 : 2;
  for (size_t lane = 0; lane < lanes; ++lane) {
    Lane& own = lanes_[lane];
    own.thread = std::thread([this, &own] { Run(own); });
  }
}

CpuBackend::~CpuBackend() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  for (Lane& lane : lanes_) lane.wake.notify_one();
  for (Lane& lane : lanes_) {
    if (lane.thread.joinable()) lane.thread.join();
  }
}

CopyEvent CpuBackend::StartCopy(CopyLane lane, std::vector<CopyPart> parts) {
  std::vector<std::vector<CopyPart>> shares(options_.links.size());
  for (const CopyPart& part : parts) {
    SIPHON_CHECK(part.from.size() == part.to.size(), "a part has one size");
    const size_t link = static_cast<size_t>(part.link.value);
    SIPHON_CHECK(link < shares.size(), "a part runs over a link of the backend");
    SIPHON_CHECK((part.from.on_drive() || part.to.on_drive()) == IsDrive(part.link),
                 "the drive has a link of its own");
    if (!part.from.empty()) shares[link].push_back(part);
  }
  const Nanos now = options_.clock.now();
  CopyEvent event;
  {
    const std::lock_guard lock(mutex_);
    event = CopyEvent(started_++);
    for (size_t link = 0; link < shares.size(); ++link) {
      if (shares[link].empty()) continue;
      const CopyLinkId id(static_cast<int>(link));
      Lane& to = LaneOf(lane, id);
      to.queues.Add(event, id, std::move(shares[link]), now);
      ++pending_[event.value].shares;
      to.wake.notify_one();
    }
  }
  return event;
}

absl::StatusOr<bool> CpuBackend::TestLocked(CopyEvent event) const {
  if (event.value < 0 || event.value >= started_) {
    return absl::InvalidArgumentError(
        absl::StrCat("no copy has the number ", event.value, ": ", started_, " were started"));
  }
  const auto failed = failed_.find(event.value);
  if (failed != failed_.end()) return failed->second;
  return !pending_.contains(event.value);
}

absl::StatusOr<bool> CpuBackend::Test(CopyEvent event) {
  const std::lock_guard lock(mutex_);
  return TestLocked(event);
}

absl::Status CpuBackend::Wait(CopyEvent event) {
  std::unique_lock lock(mutex_);
  while (true) {
    const absl::StatusOr<bool> complete = TestLocked(event);
    if (!complete.ok() || *complete) return complete.status();
    completed_.wait(lock);
  }
}

void CpuBackend::Abort() {
  const Nanos now = options_.clock.now();
  std::unique_lock lock(mutex_);
  for (auto& [copy, pending] : pending_) {
    pending.status.Update(absl::CancelledError("the copy was given up"));
    for (Lane& lane : lanes_) lane.queues.Cut(CopyEvent(copy), now);
  }
  for (Lane& lane : lanes_) lane.wake.notify_one();
  completed_.wait(lock, [this] { return pending_.empty(); });
}

void CpuBackend::SlowDown(CopyLinkId link, double factor) {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) lane.queues.SlowDown(link, factor);
}

std::vector<CopyLinkUse> CpuBackend::TakeUse() {
  const std::lock_guard lock(mutex_);
  std::vector<CopyLinkUse> uses(options_.links.size());
  for (Lane& lane : lanes_) {
    const std::vector<CopyLinkUse> of_lane = lane.queues.TakeUse();
    for (size_t link = 0; link < uses.size(); ++link) {
      uses[link].copies += of_lane[link].copies;
      uses[link].bytes += of_lane[link].bytes;
      uses[link].time += of_lane[link].time;
    }
  }
  return uses;
}

void CpuBackend::Run(Lane& own) {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::optional<Nanos> next = own.queues.NextTime();
    if (!next.has_value()) {
      own.wake.wait(lock);
      continue;
    }
    const std::optional<LinkTurn> turn = own.queues.Take(options_.clock.now());
    if (!turn.has_value()) {
      options_.clock.wait_until(lock, own.wake, *next);
      continue;
    }
    absl::Status moved;
    if (!turn->parts.empty()) {
      lock.unlock();
      moved = Move(own.lane, *turn);
      lock.lock();
    }
    if (!moved.ok()) own.queues.Cut(turn->copy, turn->time);
    Settle(*turn, moved);
  }
}

absl::Status CpuBackend::Move(CopyLane lane, const LinkTurn& turn) const {
  if (options_.before_chunk != nullptr) {
    CopyChunk chunk = {.lane = lane, .link = turn.link, .number = turn.chunk};
    for (const CopyPart& part : turn.parts) {
      chunk.bytes += Bytes(static_cast<int64_t>(part.from.size()));
    }
    const absl::Status status = options_.before_chunk(chunk);
    if (!status.ok()) {
      return absl::InternalError(absl::StrCat(ToString(chunk), ": ", status.message()));
    }
  }
  if (IsDrive(turn.link)) return options_.drive->move(lane, turn.parts);
  for (const CopyPart& part : turn.parts) {
    StreamCopy({part.from.data(), part.from.size()}, {part.to.data(), part.to.size()});
  }
  return absl::OkStatus();
}

void CpuBackend::Settle(const LinkTurn& turn, const absl::Status& moved) {
  const auto it = pending_.find(turn.copy.value);
  it->second.status.Update(moved);
  if (!turn.parts.empty() || --it->second.shares > 0) return;
  if (!it->second.status.ok()) failed_.emplace(turn.copy.value, it->second.status);
  pending_.erase(it);
  completed_.notify_all();
}

}  // namespace siphon
