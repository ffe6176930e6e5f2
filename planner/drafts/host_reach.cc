#include "planner/drafts/host_reach.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/numeric/int128.h"

namespace siphon {
namespace {

constexpr Bytes kUnlimited{std::numeric_limits<int64_t>::max()};
constexpr int64_t kNanosPerSecond = 1'000'000'000;

// The slower direction, each while the other runs.
BytesPerSecond RoundTripRate(const PcieSwitch& uplink) {
  const auto both = [](BytesPerSecond alone, BytesPerSecond both) {
    return both > BytesPerSecond(0) ? both : alone;
  };
  const BytesPerSecond out = both(uplink.to_host, uplink.to_host_both);
  const BytesPerSecond in = both(uplink.from_host, uplink.from_host_both);
  if (out == BytesPerSecond(0) || in == BytesPerSecond(0)) return std::max(out, in);
  return std::min(out, in);
}

Bytes BytesIn(Nanos slot, BytesPerSecond rate, int sharers) {
  if (rate == BytesPerSecond(0)) return kUnlimited;
  const absl::int128 bytes =
      absl::int128(rate.value) * slot.value / (absl::int128(kNanosPerSecond) * sharers);
  return std::min(kUnlimited, Bytes(static_cast<int64_t>(bytes)));
}

}  // namespace

std::vector<Bytes> HiddenHostBytes(const PlanningProblem& problem, const DeviceMapping& mapping,
                                   Nanos slot) {
  const int workers = WorkerCount(problem.schedule);
  std::vector<Bytes> hidden(static_cast<size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    if (DeviceCount(problem.topology) == 0) {
      hidden[worker] = BytesIn(slot, problem.transport.host_rate, workers);
      continue;
    }
    const auto uplink = SwitchOf(problem.topology, mapping.device_of_worker[worker]);
    if (!uplink) continue;
    const auto shares = [&](DeviceId device) {
      return SwitchOf(problem.topology, device) == uplink;
    };
    const auto sharers =
        std::count_if(mapping.device_of_worker.begin(), mapping.device_of_worker.end(), shares);
    hidden[worker] =
        BytesIn(slot, RoundTripRate(problem.topology.switches[*uplink]), static_cast<int>(sharers));
  }
  return hidden;
}

bool ReachesHost(const PlanningProblem& problem, const DeviceMapping& mapping) {
  if (DeviceCount(problem.topology) == 0) return true;
  return std::all_of(
      mapping.device_of_worker.begin(), mapping.device_of_worker.end(),
      [&](DeviceId device) { return SwitchOf(problem.topology, device).has_value(); });
}

bool HostMayStep(const PlanningProblem& problem, const DeviceMapping& mapping) {
  return problem.host_step > Nanos(0) && ReachesHost(problem, mapping);
}

}  // namespace siphon
