#ifndef SIPHON_SWAP_DEVICE_NVME_MOVER_H_
#define SIPHON_SWAP_DEVICE_NVME_MOVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "planner/units.h"
#include "swap/device/copy_side.h"
#include "swap/device/device_backend.h"
#include "swap/device/nvme_file.h"
#include "swap/device/nvme_io.h"

namespace siphon {

struct NvmeMoverOptions {
  Bytes buffer{1 << 20};  // one request; a multiple of kNvmeBlock
  int depth = 8;          // requests under way, each with a buffer of its own
  // A drive that answers nothing for so long counts as broken. The kernel itself gives a request to
  // an NVMe drive 30 s (nvme_core.io_timeout), and tries again.
  Nanos patience{60'000'000'000};
  // From tensor to buffer and back: std::memcpy; a device's copy to pinned memory on CUDA. Complete
  // when it returns. Its errors are those of Move.
  std::function<absl::Status(void* to, const void* from, size_t bytes)> copy;
  // Where the buffers are, from a page's begin on; outlives the mover. Empty: in a mapping of its
  // own.
  absl::Span<std::byte> memory;
  // Called by the destructor where a drive that hangs may still write there: it has to stay.
  std::function<void()> keep_memory;
  Bytes BufferBytes() const { return buffer * depth; }
};

// Moves bytes between memory and a file, through buffers that are aligned as drives want it:
// tensors begin anywhere. Tensors that lie side by side in the file share requests. What is not
// whole blocks is read, changed and written back, so that bytes beside a range stay as they are.
//
// Thread-safety: one thread at a time. Two movers of one file may work at the same time on ranges
// that share no kNvmeBlock.
class NvmeMover {
 public:
  // `file` outlives it; `io` is one for that file, of options.depth.
  NvmeMover(const NvmeFile* file, std::unique_ptr<NvmeIo> io, NvmeMoverOptions options);
  ~NvmeMover();
  NvmeMover(const NvmeMover&) = delete;
  NvmeMover& operator=(const NvmeMover&) = delete;

  // Returns when all is moved; nothing is under way then. Requires: each part has one side on the
  // drive, within the file, and all go in one direction. Errors: Internal, naming file, offset and
  // cause, when a request fails or the file has become shorter, and what has arrived is of no use;
  // when the drive does not answer, then and for ever.
  absl::Status Move(absl::Span<const CopyPart> parts);

  const NvmeIo& io() const { return *io_; }

 private:
  struct Piece {
    int64_t offset = 0;  // in the file
    size_t bytes = 0;
    const std::byte* from = nullptr;  // to be written
    std::byte* to = nullptr;          // to be read
  };
  // Bytes that follow each other in the file.
  struct Run {
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<Piece> pieces;
  };
  // What one buffer takes: [begin, end) of a run, in whole blocks [io_begin, io_end).
  struct Block {
    size_t run = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t io_begin = 0;
    int64_t io_end = 0;
    bool IsWhole() const { return begin == io_begin && end == io_end; }
  };
  struct Buffer {
    std::byte* memory = nullptr;
    Block block;
    NvmeRequest::Kind kind = NvmeRequest::Kind::kRead;
    int64_t moved = 0;  // from io_begin on
    int retries = 0;
    bool in_use = false;
  };

  static std::vector<Run> RunsOf(absl::Span<const CopyPart> parts);
  std::vector<Block> BlocksOf(const std::vector<Run>& runs) const;
  void AppendBlocks(size_t run, int64_t begin, int64_t end, int64_t alignment,
                    std::vector<Block>& blocks) const;
  absl::Status Begin(const std::vector<Run>& runs, const Block& block, CopyLane lane);
  absl::Status Start(int number, NvmeRequest::Kind kind);
  // The rest of what the buffer's request has not moved.
  absl::Status Request(int number);
  void Release(int number);
  // Whether a block that is changed in part is on its way.
  bool ChangesABlock() const;
  absl::Status FinishOne(const std::vector<Run>& runs, CopyLane lane, bool stop);
  absl::Status Advance(const std::vector<Run>& runs, CopyLane lane, int number, int64_t result);
  absl::Status MoveBlocks(const std::vector<Run>& runs, CopyLane lane);
  // Between the buffer and the tensors of its block.
  absl::Status CopyTensors(const Run& run, const Buffer& buffer, CopyLane lane) const;
  absl::Status RequestError(const Buffer& buffer, absl::string_view cause) const;

  const NvmeFile* const file_;
  const NvmeMoverOptions options_;
  const int64_t alignment_;  // kNvmeBlock, or 1 through the page cache
  const std::unique_ptr<NvmeIo> io_;
  std::byte* memory_ = nullptr;  // of all buffers; a mapping, so that it begins at a page
  std::vector<Buffer> buffers_;
  std::vector<int> free_;  // numbers of buffers
  absl::Status hung_;      // requests are under way that nobody waits for any more
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NVME_MOVER_H_
