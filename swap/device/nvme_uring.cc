#include "swap/device/nvme_uring.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

// Set by CMake where it found liburing.
#ifdef SIPHON_LIBURING
#include <liburing.h>
#endif

namespace siphon {

#ifdef SIPHON_LIBURING

namespace {

absl::Status UringError(const char* call, int result) {
  return absl::InternalError(absl::StrCat(call, ": ", std::strerror(-result)));
}

__kernel_timespec TimespecOf(Nanos time) {
  constexpr int64_t kSecond = 1'000'000'000;
  return {.tv_sec = time.value / kSecond, .tv_nsec = time.value % kSecond};
}

// The oldest kernels with io_uring read and write vectors alone.
class NvmeUring final : public NvmeIo {
 public:
  NvmeUring(int fd, const io_uring& ring, int depth) : fd_(fd), ring_(ring), vectors_(depth) {
    for (int vector = 0; vector < depth; ++vector) free_.push_back(vector);
  }
  ~NvmeUring() override { io_uring_queue_exit(&ring_); }
  NvmeUring(const NvmeUring&) = delete;
  NvmeUring& operator=(const NvmeUring&) = delete;

  absl::Status Start(const NvmeRequest& request) override {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr || free_.empty()) {
      return absl::InternalError("more requests than io_uring was made for");
    }
    const int number = free_.back();
    Vector& vector = vectors_[number];
    vector = {request.tag, {request.buffer.data(), request.buffer.size()}};
    if (request.kind == NvmeRequest::Kind::kRead) {
      io_uring_prep_readv(entry, fd_, &vector.memory, 1, static_cast<uint64_t>(request.offset));
    } else {
      io_uring_prep_writev(entry, fd_, &vector.memory, 1, static_cast<uint64_t>(request.offset));
    }
    io_uring_sqe_set_data64(entry, static_cast<uint64_t>(number));
    int submitted = 0;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN);
    if (submitted < 0) return UringError("io_uring_submit", submitted);
    free_.pop_back();
    return absl::OkStatus();
  }

  absl::StatusOr<NvmeDone> Next(Nanos patience) override {
    __kernel_timespec timeout = TimespecOf(patience);
    io_uring_cqe* entry = nullptr;
    int waited = 0;
    do {
      waited = io_uring_wait_cqe_timeout(&ring_, &entry, &timeout);
    } while (waited == -EINTR);
    if (waited == -ETIME) {
      return absl::DeadlineExceededError(absl::StrCat("no answer within ", FormatNanos(patience)));
    }
    if (waited < 0) return UringError("io_uring_wait_cqe_timeout", waited);
    const auto number = static_cast<int>(io_uring_cqe_get_data64(entry));
    const NvmeDone done{vectors_[number].tag, entry->res};
    io_uring_cqe_seen(&ring_, entry);
    free_.push_back(number);
    return done;
  }

  absl::string_view name() const override { return "io_uring"; }

 private:
  struct Vector {
    int tag = 0;
    iovec memory{};
  };

  const int fd_;
  io_uring ring_;
  std::vector<Vector> vectors_;  // the kernel reads them while requests are under way
  std::vector<int> free_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NvmeIo>> MakeNvmeUring(int fd, int depth) {
  io_uring ring{};
  const int made = io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0);
  if (made < 0) {
    return absl::UnavailableError(absl::StrCat("io_uring: ", std::strerror(-made)));
  }
  return std::unique_ptr<NvmeIo>(new NvmeUring(fd, ring, depth));
}

#else

absl::StatusOr<std::unique_ptr<NvmeIo>> MakeNvmeUring(int, int) {
  return absl::UnavailableError("io_uring: built without liburing");
}

#endif

}  // namespace siphon
