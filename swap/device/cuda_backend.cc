#include "swap/device/cuda_backend.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_ranges.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

constexpr size_t kDriveQueue = ~size_t{0};
constexpr CopyLane kLanes[] = {CopyLane::kOut, CopyLane::kIn};

}  // namespace

CudaBackend::CudaBackend(const CudaBackendOptions& options)
    : options_(options), events_(options.device), use_(options.way_of_link.size()) {}

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Make(const CudaBackendOptions& options) {
  for (size_t link = 0; link < options.way_of_link.size(); ++link) {
    const bool drive = options.drive.has_value() && options.drive->link.value == int(link);
    const int way = options.way_of_link[link];
    SIPHON_CHECK(drive || (way >= 0 && way < int(options.ways.size())), "every link has a way");
  }
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options));
  for (const CopyLane lane : kLanes) {
    for (const CudaWay& way : options.ways) {
      SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<CudaWayQueue> queue,
                              CudaWayQueue::Make(lane, way, backend->options_, &backend->events_));
      backend->queues_.push_back(std::move(queue));
    }
  }
  if (options.drive.has_value()) {
    backend->drive_ = std::make_unique<CpuBackend>(CpuBackendOptions{
        .links = {CopyLinkRate()}, .drive = DriveLink{CopyLinkId(0), options.drive->move}});
  }
  if (options.checksums) {
    SIPHON_ASSIGN_OR_RETURN(backend->checksums_, CudaTensorChecksums::Make(options.device));
  }
  backend->thread_ = std::thread([raw = backend.get()] { raw->Run(); });
  return backend;
}

CudaBackend::~CudaBackend() {
  if (thread_.joinable()) {
    Abort();
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  static_cast<void>(cudaGetLastError());
}

std::vector<CudaBackend::Share> CudaBackend::Cut(CopyLane lane, std::vector<CopyPart> parts) const {
  std::vector<Share> shares;
  for (CopyPart& part : parts) {
    SIPHON_CHECK(part.from.size() == part.to.size(), "a part has one size");
    SIPHON_CHECK(part.link.value >= 0 && part.link.value < int(options_.way_of_link.size()),
                 "a part runs over a link of the backend");
    const bool drive = options_.drive.has_value() && options_.drive->link == part.link;
    SIPHON_CHECK((part.from.on_drive() || part.to.on_drive()) == drive,
                 "the drive has a link of its own");
    if (part.from.empty()) continue;
    const size_t way = drive ? 0 : size_t(options_.way_of_link[size_t(part.link.value)]);
    const size_t queue = drive ? kDriveQueue : size_t(lane) * options_.ways.size() + way;
    const auto found = std::find_if(shares.begin(), shares.end(),
                                    [&](const Share& share) { return share.queue == queue; });
    Share& share = found != shares.end() ? *found : shares.emplace_back(Share{.queue = queue});
    if (drive) part.link = CopyLinkId(0);  // drive_ has no other
    share.parts.push_back(part);
  }
  return shares;
}

CopyEvent CudaBackend::StartCopy(CopyLane lane, std::vector<CopyPart> parts) {
  Waiting waiting{.lane = lane, .shares = Cut(lane, std::move(parts))};
  absl::Status recorded;
  if (options_.work_stream.has_value() && !waiting.shares.empty()) {
    const absl::StatusOr<cudaEvent_t> ready =
        events_.Record(static_cast<cudaStream_t>(*options_.work_stream));
    recorded = ready.status();
    if (ready.ok()) waiting.ready = *ready;
  }
  const std::lock_guard lock(mutex_);
  waiting.copy = CopyEvent(started_++);
  if (!recorded.ok()) {
    failed_.emplace(waiting.copy.value, Annotate(recorded, absl::StrCat("device ", options_.device,
                                                                        ", before a copy")));
    return waiting.copy;
  }
  if (waiting.shares.empty()) return waiting.copy;
  pending_[waiting.copy.value].shares = static_cast<int>(waiting.shares.size());
  const CopyEvent copy = waiting.copy;
  incoming_.push_back(std::move(waiting));
  wake_.notify_one();
  return copy;
}

absl::StatusOr<bool> CudaBackend::TestLocked(CopyEvent event) const {
  if (event.value < 0 || event.value >= started_) {
    return absl::InvalidArgumentError(
        absl::StrCat("no copy has the number ", event.value, ": ", started_, " were started"));
  }
  const auto failed = failed_.find(event.value);
  if (failed != failed_.end()) return failed->second;
  return !pending_.contains(event.value);
}

absl::StatusOr<bool> CudaBackend::Test(CopyEvent event) {
  const std::lock_guard lock(mutex_);
  return TestLocked(event);
}

absl::Status CudaBackend::Wait(CopyEvent event) {
  std::unique_lock lock(mutex_);
  while (true) {
    const absl::StatusOr<bool> complete = TestLocked(event);
    if (!complete.ok() || *complete) return complete.status();
    completed_.wait(lock);
  }
}

void CudaBackend::Abort() {
  std::unique_lock lock(mutex_);
  if (pending_.empty()) return;
  give_up_ = true;
  wake_.notify_one();
  completed_.wait(lock, [this] { return pending_.empty(); });
}

std::vector<CopyLinkUse> CudaBackend::TakeUse() {
  const std::lock_guard lock(mutex_);
  return std::exchange(use_, std::vector<CopyLinkUse>(use_.size()));
}

void CudaBackend::SlowDown(CopyLinkId link, double factor) {
  SIPHON_CHECK(factor >= 1, "links are slowed down, not made faster");
  const std::lock_guard lock(mutex_);
  slowed_[link] = factor;
}

void CudaBackend::CountUse() {
  const auto add = [this](CopyLinkId link, const CopyLinkUse& more) {
    CopyLinkUse& use = use_[static_cast<size_t>(link.value)];
    use.copies += more.copies;
    use.bytes += more.bytes;
    use.time += more.time;
  };
  for (const auto& queue : queues_) {
    for (const auto& [link, use] : queue->TakeUse()) add(link, use);
  }
  if (drive_ != nullptr) add(options_.drive->link, drive_->TakeUse()[0]);
}

void CudaBackend::Run() {
  NameThisThread(absl::StrCat("copies of device ", options_.device));
  // Linux may let a thread that sleeps do so for 50 us more, as long as a poll: with two chunks
  // under way at a time a way would stand still behind small ones.
  static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL));  // in ns; 0 would be the default
  // Of this thread from now on. An error shows at the first copy.
  static_cast<void>(CudaStatus(cudaSetDevice(options_.device), "using the device"));
  std::unique_lock lock(mutex_);
  while (true) {
    for (Waiting& waiting : incoming_) waiting_.push_back(std::move(waiting));
    incoming_.clear();
    for (const auto& [link, factor] : std::exchange(slowed_, {})) {
      for (const auto& queue : queues_) queue->SlowDown(link, factor);
    }
    const bool give_up = std::exchange(give_up_, false);
    lock.unlock();
    const std::vector<FinishedShare> finished = Advance(give_up);
    const bool moves = Moves();
    lock.lock();
    for (const FinishedShare& share : finished) {
      const auto pending = pending_.find(share.copy.value);
      pending->second.status.Update(share.status);
      if (--pending->second.shares > 0) continue;
      if (!pending->second.status.ok()) failed_.emplace(share.copy.value, pending->second.status);
      pending_.erase(pending);
    }
    if (!finished.empty()) {
      CountUse();
      completed_.notify_all();
    }
    if (!incoming_.empty() || give_up_) continue;
    if (stop_ && !moves) return;
    if (moves) {
      wake_.wait_for(lock, std::chrono::nanoseconds(options_.poll.value));
    } else {
      wake_.wait(lock, [this] { return stop_ || give_up_ || !incoming_.empty(); });
    }
  }
}

// Whether the copy has gone to its queues: its turn has come.
bool CudaBackend::Release(Waiting& waiting, std::vector<FinishedShare>& finished) {
  if (waiting.ready.has_value()) {
    const absl::StatusOr<bool> fired = HasFired(*waiting.ready);
    if (fired.ok() && !*fired) return false;
    events_.GiveBack(*waiting.ready);
    if (!fired.ok()) {
      const absl::Status failed =
          Annotate(fired.status(), absl::StrCat("device ", options_.device,
                                                ", before a copy, whose tensors "
                                                "the worker's stream makes"));
      for (size_t share = 0; share < waiting.shares.size(); ++share) {
        finished.push_back({waiting.copy, failed});
      }
      return true;
    }
  }
  for (Share& share : waiting.shares) {
    if (share.queue == kDriveQueue) {
      on_drive_.push_back({waiting.copy, drive_->StartCopy(waiting.lane, std::move(share.parts))});
    } else {
      queues_[share.queue]->Add({waiting.copy, std::move(share.parts)});
    }
  }
  return true;
}

std::vector<FinishedShare> CudaBackend::Advance(bool give_up) {
  std::vector<FinishedShare> finished;
  if (give_up) {
    for (const Waiting& waiting : waiting_) {
      if (waiting.ready.has_value()) events_.GiveBack(*waiting.ready);
      for (size_t share = 0; share < waiting.shares.size(); ++share) {
        finished.push_back({waiting.copy, absl::CancelledError("the copy was given up")});
      }
    }
    waiting_.clear();
    for (const auto& queue : queues_) queue->Cut();
  }
  while (!waiting_.empty() && Release(waiting_.front(), finished)) waiting_.pop_front();
  for (const auto& queue : queues_) {
    for (FinishedShare& share : queue->Advance()) finished.push_back(std::move(share));
  }
  AdvanceDrive(give_up, finished);
  return finished;
}

void CudaBackend::AdvanceDrive(bool give_up, std::vector<FinishedShare>& finished) {
  if (on_drive_.empty()) return;
  if (give_up) drive_->Abort();
  std::erase_if(on_drive_, [&](const OnDrive& share) {
    const absl::StatusOr<bool> through = drive_->Test(share.there);
    if (through.ok() && !*through) return false;
    finished.push_back({share.copy, through.status()});
    return true;
  });
}

bool CudaBackend::Moves() const {
  return !waiting_.empty() || !on_drive_.empty() ||
         std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return !queue->empty(); });
}

absl::StatusOr<std::vector<uint64_t>> CudaBackend::Checksums(
    absl::Span<const absl::Span<const std::byte>> tensors) {
  if (checksums_ == nullptr) {
    SIPHON_ASSIGN_OR_RETURN(checksums_, CudaTensorChecksums::Make(options_.device));
  }
  if (options_.work_stream.has_value()) {
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaStreamSynchronize(static_cast<cudaStream_t>(*options_.work_stream)),
        "waiting for the worker's stream before a checksum");
  }
  return checksums_->Of(tensors);
}

}  // namespace siphon
