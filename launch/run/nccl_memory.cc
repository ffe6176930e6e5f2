#include "launch/run/nccl_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {

Bytes BookedOf(const NcclMemory& nccl) {
  return nccl.measured.has_value() ? std::min(nccl.planned, nccl.measured->taken) : nccl.planned;
}

std::optional<std::string> WarningOf(const NcclMemory& nccl) {
  if (!nccl.measured.has_value() || nccl.measured->taken <= nccl.planned) return std::nullopt;
  return absl::StrCat("NCCL has ", FormatBytes(nccl.measured->taken), " of worker ",
                      nccl.worker.value, "'s device, and ", FormatBytes(nccl.planned),
                      " were planned: what is beyond is not of memory.capacity, but of what the "
                      "device has beside it");
}

absl::Status CheckRoomBeside(const NcclMemory& nccl, Bytes peak) {
  if (!nccl.measured.has_value()) return absl::OkStatus();
  const Bytes needed = peak - nccl.planned;
  const Bytes free = nccl.measured->free;
  if (needed <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the plan needs ", FormatBytes(needed), " of its device beside NCCL, and ", FormatBytes(free),
      " are left there: NCCL has ", FormatBytes(nccl.measured->taken), " (",
      FormatBytes(nccl.planned),
      " were planned), the rest is its context's or somebody else's; with a memory.capacity "
      "smaller by ",
      FormatBytes(needed - free), " it would fit"));
}

}  // namespace siphon
