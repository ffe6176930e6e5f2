#ifndef SIPHON_SWAP_DEVICE_NVME_THREADS_H_
#define SIPHON_SWAP_DEVICE_NVME_THREADS_H_

#include <memory>

#include "swap/device/nvme_io.h"

namespace siphon {

// By threads that block in pread and pwrite, at most four. The destructor leaves alone those that a
// drive does not let go.
std::unique_ptr<NvmeIo> MakeNvmeThreads(int fd, int depth);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NVME_THREADS_H_
