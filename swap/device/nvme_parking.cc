#include "swap/device/nvme_parking.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<std::unique_ptr<NvmeParking>> NvmeParking::Make(const NvmeParkingOptions& options) {
  SIPHON_ASSIGN_OR_RETURN(NvmeFile file, NvmeFile::Make(options.file));
  std::unique_ptr<NvmeParking> parking(new NvmeParking(std::move(file)));
  for (std::unique_ptr<NvmeMover>& mover : parking->movers_) {
    SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<NvmeIo> io,
                            MakeNvmeIo(options.io, parking->file_.fd(), options.mover.depth));
    mover = std::make_unique<NvmeMover>(&parking->file_, std::move(io), options.mover);
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
