#include "launch/run/parking/locked_memory.h"

#include "absl/strings/str_cat.h"
#include "launch/profile/host_use.h"

namespace siphon {
Bytes LockedAtMost(Bytes machine_memory) { return Bytes(machine_memory.value / 8 * 7); }

absl::Status CheckLockedMemory(const PreparedJob& prepared, Bytes machine_memory) {
  const HostUse use =
      FullestHost(HostUseOfServers(prepared.parking, prepared.host_steps,
                                   prepared.plan_text.topology, prepared.plan_text.mapping));
  const Bytes most = LockedAtMost(machine_memory);
  if (use.total() <= most) return absl::OkStatus();
  constexpr int64_t kMebibyte = 1 << 20;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the job does not fit: of the host its plan takes ", ToString(use),
      ", locked for copies to devices, and of this machine's ", FormatBytes(machine_memory), " ",
      FormatBytes(most), " may be\n  --set memory.host_capacity=", most.value / kMebibyte,
      "MiB plans with that"));
}

}  // namespace siphon
