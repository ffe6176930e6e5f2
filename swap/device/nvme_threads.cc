#include "swap/device/nvme_threads.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Each may wait for the drive alone; more add nothing on the drives of today, whose queues are
// filled by requests of 1 MiB.
constexpr int kMostThreads = 4;

// What threads and their owner share: it outlives a thread that a drive does not let go.
struct Desk {
  // A file descriptor of its own. Where there is none, requests say so (EBADF).
  explicit Desk(int file) : fd(fcntl(file, F_DUPFD_CLOEXEC, 0)) {}
  ~Desk() {
    if (fd >= 0) close(fd);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  const int fd;
  std::mutex mutex;
  std::condition_variable wake;  // of the threads
  std::condition_variable done;  // of the owner
  bool stop ABSL_GUARDED_BY(mutex) = false;
  int in_calls ABSL_GUARDED_BY(mutex) = 0;
  std::deque<NvmeRequest> requests ABSL_GUARDED_BY(mutex);
  std::deque<NvmeDone> answers ABSL_GUARDED_BY(mutex);
};

int64_t Call(int fd, const NvmeRequest& request) {
  const ssize_t moved =
      request.kind == NvmeRequest::Kind::kRead
          ? pread(fd, request.buffer.data(), request.buffer.size(), request.offset)
          : pwrite(fd, request.buffer.data(), request.buffer.size(), request.offset);
  return moved < 0 ? -errno : moved;
}

void Work(const std::shared_ptr<Desk>& desk) {
  std::unique_lock lock(desk->mutex);
  while (true) {
    desk->wake.wait(lock, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return desk->stop || !desk->requests.empty();
    });
    if (desk->stop) return;
    const NvmeRequest request = desk->requests.front();
    desk->requests.pop_front();
    ++desk->in_calls;
    lock.unlock();
    const int64_t result = Call(desk->fd, request);
    lock.lock();
    --desk->in_calls;
    desk->answers.push_back({request.tag, result});
    desk->done.notify_one();
  }
}

class NvmeThreads final : public NvmeIo {
 public:
  NvmeThreads(int fd, int depth) : desk_(std::make_shared<Desk>(fd)) {
    for (int thread = 0; thread < std::min(depth, kMostThreads); ++thread) {
      threads_.emplace_back([desk = desk_] { Work(desk); });
    }
  }
  ~NvmeThreads() override {
    bool hangs = false;
    {
      const std::lock_guard lock(desk_->mutex);
      desk_->stop = true;
      hangs = desk_->in_calls > 0;
    }
    desk_->wake.notify_all();
    for (std::thread& thread : threads_) {
      hangs ? thread.detach() : thread.join();
    }
  }
  NvmeThreads(const NvmeThreads&) = delete;
  NvmeThreads& operator=(const NvmeThreads&) = delete;

  absl::Status Start(const NvmeRequest& request) override {
    {
      const std::lock_guard lock(desk_->mutex);
      desk_->requests.push_back(request);
    }
    desk_->wake.notify_one();
    return absl::OkStatus();
  }

  absl::StatusOr<NvmeDone> Next(Nanos patience) override {
    std::unique_lock lock(desk_->mutex);
    const bool answered = desk_->done.wait_for(
        lock, std::chrono::nanoseconds(patience.value),
        [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !desk_->answers.empty(); });
    if (!answered) {
      return absl::DeadlineExceededError(absl::StrCat("no answer within ", FormatNanos(patience)));
    }
    const NvmeDone done = desk_->answers.front();
    desk_->answers.pop_front();
    return done;
  }

  absl::string_view name() const override { return "threads"; }

 private:
  const std::shared_ptr<Desk> desk_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<NvmeIo> MakeNvmeThreads(int fd, int depth) {
  return std::make_unique<NvmeThreads>(fd, depth);
}

}  // namespace siphon
