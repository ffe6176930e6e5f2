#include "swap/device/cuda_copy_trial.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "planner/status.h"
#include "swap/device/cuda_host_pool.h"
#include "swap/device/cuda_peers.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

constexpr std::chrono::seconds kLongest{60};
constexpr std::chrono::microseconds kLook{20};
// What is compared at each end of a chunk.
constexpr size_t kCompared = 512;

std::string PlaceName(const std::optional<int>& device) {
  return device.has_value() ? absl::StrCat("device ", *device) : "the host";
}

std::string PathName(const CopyPath& path) {
  return absl::StrCat("a copy from ", PlaceName(path.from), " to ", PlaceName(path.to),
                      " by device ", path.issuer);
}

// Memory of one end of a path.
class TrialMemory {
 public:
  static absl::StatusOr<std::unique_ptr<TrialMemory>> Take(const std::optional<int>& device,
                                                           const CopyTrial& trial) {
    const Bytes bytes = trial.bytes;
    auto taken = std::make_unique<TrialMemory>();
    if (!device.has_value()) {
      SIPHON_ASSIGN_OR_RETURN(
          taken->pool_,
          MakeCudaHostPool({.bytes = bytes, .cap = bytes, .numa_node = trial.host_node}));
      SIPHON_ASSIGN_OR_RETURN(taken->memory_, taken->pool_->Take(bytes));
      return taken;
    }
    const CudaDeviceScope scope(*device);
    SIPHON_RETURN_IF_ERROR(scope.status());
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaMalloc(&taken->on_device_, static_cast<size_t>(bytes.value)),
        absl::StrCat("taking ", bytes.value, " bytes of device ", *device, " to measure copies"));
    taken->memory_ = absl::MakeSpan(static_cast<std::byte*>(taken->on_device_),
                                    static_cast<size_t>(bytes.value));
    return taken;
  }
  TrialMemory() = default;
  ~TrialMemory() {
    if (on_device_ != nullptr) static_cast<void>(cudaFree(on_device_));
    static_cast<void>(cudaGetLastError());
  }
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  absl::Span<std::byte> memory() const { return memory_; }

 private:
  std::unique_ptr<PinnedPool> pool_;
  void* on_device_ = nullptr;
  absl::Span<std::byte> memory_;
};

// An event that knows when it fired.
class TimedEvent {
 public:
  TimedEvent() = default;
  TimedEvent(TimedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  TimedEvent& operator=(TimedEvent&&) = delete;
  ~TimedEvent() {
    if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
  }
  absl::Status Record(cudaStream_t stream) {
    if (event_ == nullptr) {
      SIPHON_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event_, cudaEventDefault),
                                  "making an event with a time");
    }
    return CudaStatus(cudaEventRecord(event_, stream), "recording an event");
  }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// A path with what it needs to run.
class TrialPath {
 public:
  TrialPath(const CopyPath& path, const CopyTrial& trial)
      : path_(path),
        chunk_(static_cast<size_t>(trial.chunk.value)),
        there_(static_cast<size_t>(trial.bytes.value / trial.chunk.value)) {}
  ~TrialPath() {
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaGetLastError());
  }
  TrialPath(const TrialPath&) = delete;
  TrialPath& operator=(const TrialPath&) = delete;

  const CopyPath& path() const { return path_; }
  cudaStream_t stream() const { return stream_; }
  size_t chunks() const { return there_.size(); }

  absl::Status Prepare(const CopyTrial& trial);
  absl::Status StartChunk(size_t chunk);
  absl::StatusOr<bool> IsThrough() const;
  absl::StatusOr<ChunkTimes> TimesSince(const TimedEvent& start) const;
  absl::Status Compare() const;

 private:
  absl::Span<std::byte> Chunk(const TrialMemory& memory, size_t chunk) const {
    return memory.memory().subspan(chunk * chunk_, chunk_);
  }

  const CopyPath path_;
  const size_t chunk_;
  std::unique_ptr<TrialMemory> from_;
  std::unique_ptr<TrialMemory> to_;
  cudaStream_t stream_ = nullptr;
  std::vector<TimedEvent> there_;  // [chunk]
};

// Never zero, which is what the target holds before.
int FillOf(size_t chunk) { return static_cast<int>(chunk % 255) + 1; }

absl::Status TrialPath::Prepare(const CopyTrial& trial) {
  const CudaDeviceScope scope(path_.issuer);
  SIPHON_RETURN_IF_ERROR(scope.status());
  for (const std::optional<int>& end : {path_.from, path_.to}) {
    if (end.has_value()) SIPHON_RETURN_IF_ERROR(AllowCudaPeer(path_.issuer, *end));
  }
  SIPHON_ASSIGN_OR_RETURN(from_, TrialMemory::Take(path_.from, trial));
  SIPHON_ASSIGN_OR_RETURN(to_, TrialMemory::Take(path_.to, trial));
  SIPHON_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                              "making a stream to measure copies");
  for (size_t chunk = 0; chunk < chunks(); ++chunk) {
    const absl::Span<std::byte> source = Chunk(*from_, chunk);
    SIPHON_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(source.data(), FillOf(chunk), source.size(), stream_), "filling memory");
    const absl::Span<std::byte> target = Chunk(*to_, chunk);
    SIPHON_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(target.data(), 0, target.size(), stream_),
                                "filling memory");
  }
  return CudaStatus(cudaStreamSynchronize(stream_), "filling memory");
}

absl::Status TrialPath::StartChunk(size_t chunk) {
  const absl::Span<std::byte> to = Chunk(*to_, chunk);
  SIPHON_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to.data(), Chunk(*from_, chunk).data(), to.size(),
                                              cudaMemcpyDefault, stream_),
                              PathName(path_));
  // An error of an earlier chunk turns up at any later call.
  return Annotate(there_[chunk].Record(stream_), PathName(path_));
}

absl::StatusOr<bool> TrialPath::IsThrough() const {
  const cudaError_t answer = cudaEventQuery(there_.back().event());
  if (answer == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  SIPHON_CUDA_RETURN_IF_ERROR(answer, PathName(path_));
  return true;
}

absl::StatusOr<ChunkTimes> TrialPath::TimesSince(const TimedEvent& start) const {
  ChunkTimes times;
  for (const TimedEvent& there : there_) {
    float milliseconds = 0;
    SIPHON_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, start.event(), there.event()),
                                absl::StrCat("the time of ", PathName(path_)));
    times.emplace_back(std::llround(static_cast<double>(milliseconds) * 1e6));
  }
  return times;
}

absl::Status TrialPath::Compare() const {
  const CudaDeviceScope scope(path_.issuer);
  SIPHON_RETURN_IF_ERROR(scope.status());
  const size_t size = std::min(chunk_, kCompared);
  std::vector<std::byte> arrived(size);
  for (size_t chunk = 0; chunk < chunks(); ++chunk) {
    const std::byte sent{static_cast<unsigned char>(FillOf(chunk))};
    for (const size_t at : {size_t{0}, chunk_ - size}) {
      SIPHON_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(arrived.data(), &Chunk(*to_, chunk)[at], size,
                                                  cudaMemcpyDefault, stream_),
                                  "reading what arrived");
      SIPHON_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_), "reading what arrived");
      if (std::count(arrived.begin(), arrived.end(), sent) == static_cast<ptrdiff_t>(size))
        continue;
      return absl::InternalError(absl::StrCat(
          PathName(path_), ": other bytes arrived than were sent, in the ", size, " from byte ",
          chunk * chunk_ + at, " on; this server's copies cannot be relied on"));
    }
  }
  return absl::OkStatus();
}

class Trial {
 public:
  explicit Trial(const CopyTrial& trial) : trial_(trial) {
    for (const CopyPath& path : trial.paths) {
      paths_.push_back(std::make_unique<TrialPath>(path, trial));
    }
  }

  absl::Status Prepare() {
    for (const auto& path : paths_) SIPHON_RETURN_IF_ERROR(path->Prepare(trial_));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<CopyFigure>> Round();
  absl::Status Compare() const {
    for (const auto& path : paths_) SIPHON_RETURN_IF_ERROR(path->Compare());
    return absl::OkStatus();
  }

 private:
  absl::Status Start();
  absl::Status Await() const;

  const CopyTrial trial_;
  std::vector<std::unique_ptr<TrialPath>> paths_;
  std::map<int, TimedEvent> starts_;  // of each issuer: times of two devices cannot be compared
};

// All streams of a device begin at one event.
absl::Status Trial::Start() {
  std::map<int, bool> started;
  for (const auto& path : paths_) {
    const int issuer = path->path().issuer;
    const CudaDeviceScope scope(issuer);
    SIPHON_RETURN_IF_ERROR(scope.status());
    if (!std::exchange(started[issuer], true)) {
      SIPHON_RETURN_IF_ERROR(starts_[issuer].Record(path->stream()));
    } else {
      SIPHON_CUDA_RETURN_IF_ERROR(
          cudaStreamWaitEvent(path->stream(), starts_.at(issuer).event(), 0), "waiting to begin");
    }
  }
  for (size_t chunk = 0; chunk < paths_.front()->chunks(); ++chunk) {
    for (const auto& path : paths_) {
      const CudaDeviceScope scope(path->path().issuer);
      SIPHON_RETURN_IF_ERROR(Annotate(scope.status(), PathName(path->path())));
      SIPHON_RETURN_IF_ERROR(path->StartChunk(chunk));
    }
  }
  return absl::OkStatus();
}

absl::Status Trial::Await() const {
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  for (const auto& path : paths_) {
    while (true) {
      SIPHON_ASSIGN_OR_RETURN(const bool is_through, path->IsThrough());
      if (is_through) break;
      if (std::chrono::steady_clock::now() > deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat(PathName(path->path()), " was not through after a minute"));
      }
      std::this_thread::sleep_for(kLook);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CopyFigure>> Trial::Round() {
  SIPHON_RETURN_IF_ERROR(Start());
  SIPHON_RETURN_IF_ERROR(Await());
  std::vector<ChunkTimes> times;
  for (const auto& path : paths_) {
    times.emplace_back();
    SIPHON_ASSIGN_OR_RETURN(times.back(), path->TimesSince(starts_.at(path->path().issuer)));
  }
  return FiguresOf(times, trial_.chunk);
}

}  // namespace

absl::StatusOr<std::vector<CopyFigure>> RunCudaCopyTrial(const CopyTrial& trial) {
  SIPHON_CHECK(!trial.paths.empty() && trial.rounds > 0, "a trial has paths and rounds");
  if (trial.chunk <= Bytes(0) || trial.bytes < trial.chunk ||
      trial.bytes.value % trial.chunk.value != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(trial.bytes.value, " bytes are no whole chunks of ", trial.chunk.value));
  }
  auto running = std::make_unique<Trial>(trial);
  SIPHON_RETURN_IF_ERROR(running->Prepare());
  std::vector<std::vector<CopyFigure>> rounds;
  for (int round = 0; round < trial.rounds; ++round) {
    absl::StatusOr<std::vector<CopyFigure>> figures = running->Round();
    if (absl::IsDeadlineExceeded(figures.status())) {
      // Giving back memory that a copy hangs on would wait for it, too; the process ends soon.
      static_cast<void>(running.release());
    }
    SIPHON_RETURN_IF_ERROR(figures.status());
    rounds.push_back(*std::move(figures));
  }
  SIPHON_RETURN_IF_ERROR(running->Compare());
  return MedianFigures(rounds);
}

}  // namespace siphon
