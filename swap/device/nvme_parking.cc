#include "swap/device/nvme_parking.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kLanes = 2;
constexpr int64_t kLeastFilePerBuffers = 4;

}  // namespace

NvmeMoverOptions MoverFor(Bytes file) {
  NvmeMoverOptions options;
  const int64_t buffers = int64_t{kLanes} * options.depth;
  const int64_t blocks = file.value / kLeastFilePerBuffers / buffers / kNvmeBlock;
  options.buffer = std::min(options.buffer, Bytes(std::max<int64_t>(blocks, 1) * kNvmeBlock));
  return options;
}

Bytes NvmeBufferBytes(Bytes file) {
  if (file == Bytes(0)) return Bytes(0);
  const NvmeMoverOptions options = MoverFor(file);
  return options.BufferBytes() * kLanes;
}

absl::StatusOr<std::unique_ptr<NvmeParking>> NvmeParking::Make(const NvmeParkingOptions& options) {
  SIPHON_ASSIGN_OR_RETURN(NvmeFile file, NvmeFile::Make(options.file));
  std::unique_ptr<NvmeParking> parking(new NvmeParking(std::move(file)));
  NvmeMoverOptions lane = options.mover;
  const size_t buffers = options.mover.memory.size() / kLanes;
  for (std::unique_ptr<NvmeMover>& mover : parking->movers_) {
    SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<NvmeIo> io,
                            MakeNvmeIo(options.io, parking->file_.fd(), options.mover.depth));
    lane.memory = options.mover.memory.subspan(mover == parking->movers_[0] ? 0 : buffers, buffers);
    mover = std::make_unique<NvmeMover>(&parking->file_, std::move(io), lane);
  }
  return parking;
}

absl::Status NvmeParking::Move(CopyLane lane, absl::Span<const CopyPart> parts) {
  return movers_[static_cast<size_t>(lane)]->Move(parts);
}

CopySide<std::byte> NvmeParking::bytes() const {
  return CopySide<std::byte>(DriveRange{0, static_cast<size_t>(file_.bytes().value)});
}

std::string NvmeParking::Text() const {
  return absl::StrCat(movers_[0]->io().name(), file_.direct() ? " past" : " through",
                      " the page cache");
}

}  // namespace siphon
