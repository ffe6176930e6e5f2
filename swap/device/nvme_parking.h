#ifndef SIPHON_SWAP_DEVICE_NVME_PARKING_H_
#define SIPHON_SWAP_DEVICE_NVME_PARKING_H_

#include <array>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "swap/device/device_backend.h"
#include "swap/device/nvme_file.h"
#include "swap/device/nvme_io.h"
#include "swap/device/nvme_mover.h"

namespace siphon {

struct NvmeParkingOptions {
  NvmeFileOptions file;
  NvmeIoKind io = NvmeIoKind::kAny;
  NvmeMoverOptions mover;  // of either lane; its memory is both lanes' together
};

// Requests for a file of that size: of 1 MiB each, but the buffers of both lanes together no more
// than a quarter of the file, or a block each, so that parking on a drive is not mostly memory.
NvmeMoverOptions MoverFor(Bytes file);
// Of the host, what NvmeParking takes for its buffers with MoverFor; 0 where there is no file.
Bytes NvmeBufferBytes(Bytes file);

// A worker's place on a drive: its file, and a mover for each lane. Its buffers are memory of the
// host, twice mover.BufferBytes().
//
// Thread-safety: one thread a lane.
class NvmeParking {
 public:
  // Errors: as NvmeFile::Make and MakeNvmeIo.
  static absl::StatusOr<std::unique_ptr<NvmeParking>> Make(const NvmeParkingOptions& options);

  // As NvmeMover::Move.
  absl::Status Move(CopyLane lane, absl::Span<const CopyPart> parts);

  CopySide<std::byte> bytes() const;  // all of the file
  const NvmeFile& file() const { return file_; }
  // "io_uring past the page cache", "threads through the page cache"
  std::string Text() const;

 private:
  explicit NvmeParking(NvmeFile file) : file_(std::move(file)) {}

  const NvmeFile file_;
  std::array<std::unique_ptr<NvmeMover>, 2> movers_;  // of each CopyLane
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NVME_PARKING_H_
