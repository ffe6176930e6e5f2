#ifndef SIPHON_SWAP_DEVICE_NVME_IO_H_
#define SIPHON_SWAP_DEVICE_NVME_IO_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/units.h"

namespace siphon {

// Where files on drives may be read and written past the page cache: offsets, sizes and addresses
// are multiples of it. 512 would do for some drives, 4096 does for all.
inline constexpr int64_t kNvmeBlock = 4096;

struct NvmeRequest {
  enum class Kind { kRead, kWrite };
  Kind kind = Kind::kRead;
  int64_t offset = 0;  // in the file
  absl::Span<std::byte> buffer;
  int tag = 0;  // the caller's; of one request at a time
};

struct NvmeDone {
  int tag = 0;
  int64_t result = 0;  // bytes that were moved, or a negative errno
};

// Requests to one file that are under way at the same time, and end in any order.
//
// Thread-safety: one thread at a time.
class NvmeIo {
 public:
  virtual ~NvmeIo() = default;
  // Enqueues and returns at once. The buffer stays valid until the request is done. Requires: fewer
  // are under way than the depth that it was made with. Errors: Internal.
  virtual absl::Status Start(const NvmeRequest& request) = 0;
  // Waits for a request to be done. Requires: one is under way. Errors: DeadlineExceeded when none
  // is within `patience`: then all of them stay under way; Internal.
  virtual absl::StatusOr<NvmeDone> Next(Nanos patience) = 0;
  // "io_uring", "threads"
  virtual absl::string_view name() const = 0;
};

enum class NvmeIoKind {
  kAny,      // io_uring where the kernel lets us, threads elsewhere
  kUring,    // Errors: Unavailable where a kernel or a filter forbids it, or it was not built
  kThreads,  // pread and pwrite
};

// For the open file `fd`, which outlives it; at most `depth` requests under way.
absl::StatusOr<std::unique_ptr<NvmeIo>> MakeNvmeIo(NvmeIoKind kind, int fd, int depth);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NVME_IO_H_
