#include "planner/bounds/counting/away_limits.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/numeric/int128.h"

namespace siphon {

RecomputeLimit::RecomputeLimit(std::vector<RecomputableParts> parts) : parts_(std::move(parts)) {
  std::sort(parts_.begin(), parts_.end(),
            [](const RecomputableParts& a, const RecomputableParts& b) {
              return absl::int128(a.bytes.value) * b.time.value >
                     absl::int128(b.bytes.value) * a.time.value;
            });
}

Bytes RecomputeLimit::Within(Nanos time) const {
  if (time < Nanos(0)) return Bytes(0);
  absl::int128 left = time.value;
  absl::int128 bytes = 0;
  for (const RecomputableParts& parts : parts_) {
    const absl::int128 all = absl::int128(parts.time.value) * parts.count;
    if (all > left) {
      const absl::int128 rounded_up =
          (left * parts.bytes.value + parts.time.value - 1) / parts.time.value;
      bytes += rounded_up;
      break;
    }
    left -= all;
    bytes += absl::int128(parts.bytes.value) * parts.count;
  }
  return Bytes(static_cast<int64_t>(bytes));
}

Bytes StandingAwayAtMost(const WorkerMemory& memory, const HostStep& host_step, Bytes moved_in) {
  const Bytes all = memory.parameters + memory.gradients + memory.optimizer_state;
  if (moved_in >= all) return all;
  if (!host_step.open) return moved_in;
  // The host has whatever state it steps at no bytes at all.
  if (host_step.parameters == 0) return all;
  const double away =
      std::ceil(static_cast<double>(moved_in.value) * (1 + 1 / host_step.parameters));
  return Bytes(static_cast<int64_t>(std::min(away, static_cast<double>(all.value))));
}

}  // namespace siphon
