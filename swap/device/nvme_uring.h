#ifndef SIPHON_SWAP_DEVICE_NVME_URING_H_
#define SIPHON_SWAP_DEVICE_NVME_URING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "swap/device/nvme_io.h"

namespace siphon {

// Through io_uring: no thread of ours waits, and one system call starts a request. Errors:
// Unavailable when the kernel has no io_uring (ENOSYS), a filter or an administrator forbids it
// (EPERM, EACCES), it gives no memory for it, or liburing was not there when this was built.
absl::StatusOr<std::unique_ptr<NvmeIo>> MakeNvmeUring(int fd, int depth);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NVME_URING_H_
