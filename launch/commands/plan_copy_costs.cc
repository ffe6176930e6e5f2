#include "launch/commands/plan_copy_costs.h"

#include <algorithm>
#include <cstdint>

#include "absl/numeric/int128.h"

namespace siphon {
namespace {

Nanos CopyTime(Bytes bytes, BytesPerSecond rate, Nanos latency) {
  if (bytes == Bytes(0)) return Nanos(0);
  if (rate == BytesPerSecond(0)) return latency;
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 scaled = absl::int128(bytes.value) * kNanosPerSecond;
  return Nanos(static_cast<int64_t>((scaled + rate.value - 1) / rate.value)) + latency;
}

// Of which 0 is no limit.
BytesPerSecond Slower(BytesPerSecond a, BytesPerSecond b) {
  if (a == BytesPerSecond(0)) return b;
  return b == BytesPerSecond(0) ? a : std::min(a, b);
}

}  // namespace

CopyCosts::CopyCosts(const PlanningProblem& problem, DeviceId device)
    : problem_(problem), topology_(problem.topology), device_(device) {}

std::optional<CopyCosts::HostWays> CopyCosts::ToHost() const {
  if (DeviceCount(topology_) == 0) {
    const Way way{problem_.transport.host_rate, problem_.transport.latency};
    return HostWays{way, way};
  }
  const std::optional<int> index = SwitchOf(topology_, device_);
  if (!index.has_value()) return std::nullopt;
  const PcieSwitch& uplink = topology_.switches[*index];
  return HostWays{{uplink.to_host, uplink.latency}, {uplink.from_host, uplink.latency}};
}

std::optional<Nanos> CopyCosts::Host(Bytes bytes) const {
  const std::optional<HostWays> host = ToHost();
  if (!host.has_value()) return std::nullopt;
  return CopyTime(bytes, host->out.rate, host->out.latency) +
         CopyTime(bytes, host->back.rate, host->back.latency);
}

std::optional<Nanos> CopyCosts::Nvme(Bytes bytes) const {
  const std::optional<HostWays> host = ToHost();
  if (topology_.drives.empty() || !host.has_value()) return std::nullopt;
  const NvmeDrive& drive = topology_.drives[DriveOf(topology_, device_)];
  return CopyTime(bytes, Slower(host->out.rate, drive.write), host->out.latency + drive.latency) +
         CopyTime(bytes, Slower(host->back.rate, drive.read), host->back.latency + drive.latency);
}

std::optional<Nanos> CopyCosts::Peers(Bytes bytes) const {
  BytesPerSecond rate;
  for (const TopologyLink& link : topology_.links) {
    if (link.from == device_) rate += link.rate;
  }
  if (rate == BytesPerSecond(0)) return std::nullopt;
  rate = Slower(rate, topology_.devices[device_.value].egress);
  return CopyTime(bytes, rate, Nanos(0)) * 2;
}

Nanos CopyCosts::Stripes(const std::vector<Stripe>& stripes) const {
  Nanos out;
  Nanos back;
  for (const Stripe& stripe : stripes) {
    const TopologyLink there = LinkBetween(device_, stripe.lender);
    const TopologyLink here = LinkBetween(stripe.lender, device_);
    out = std::max(out, CopyTime(stripe.bytes, there.rate, there.latency));
    back = std::max(back, CopyTime(stripe.bytes, here.rate, here.latency));
  }
  return out + back;
}

TopologyLink CopyCosts::LinkBetween(DeviceId from, DeviceId to) const {
  return FindLink(topology_, from, to).value_or(TopologyLink());
}

}  // namespace siphon
