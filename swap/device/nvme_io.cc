#include "swap/device/nvme_io.h"

#include "swap/device/nvme_threads.h"
#include "swap/device/nvme_uring.h"

namespace siphon {

absl::StatusOr<std::unique_ptr<NvmeIo>> MakeNvmeIo(NvmeIoKind kind, int fd, int depth) {
  if (kind != NvmeIoKind::kThreads) {
    absl::StatusOr<std::unique_ptr<NvmeIo>> ring = MakeNvmeUring(fd, depth);
    if (ring.ok() || kind == NvmeIoKind::kUring) return ring;
  }
  return MakeNvmeThreads(fd, depth);
}

}  // namespace siphon
