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
  const std::string lack =
      absl::StrCat("the plan needs ", FormatBytes(needed), " more of the memory of worker ",
                   nccl.worker.value, "'s device, and ", FormatBytes(free), " are left there: ");
  const Bytes beyond = std::max(nccl.measured->taken - nccl.planned, Bytes(0));
  if (needed <= free + beyond) {
    return absl::ResourceExhaustedError(absl::StrCat(
        lack, "NCCL has ", FormatBytes(nccl.measured->taken), " (", FormatBytes(nccl.planned),
        " were planned); with a memory.capacity smaller by ", FormatBytes(needed - free),
        " it would fit"));
  }
  // Where most of it is gone, no job that is as good would fit.
  const bool nearly = free * 2 >= needed;
  return absl::FailedPreconditionError(absl::StrCat(
      lack,
      "the rest is another process's, or this one's context (nvidia-smi shows which); end that "
      "process, or take another device (CUDA_VISIBLE_DEVICES)",
      nearly ? absl::StrCat(", or a memory.capacity smaller by ", FormatBytes(needed - free))
             : ""));
}

}  // namespace siphon
