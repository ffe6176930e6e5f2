#include "planner/baselines/server_rates.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr int64_t kUnlimitedRate = std::numeric_limits<int64_t>::max();

int64_t RateOrUnlimited(BytesPerSecond rate) {
  return rate > BytesPerSecond(0) ? rate.value : kUnlimitedRate;
}

void Limit(BytesPerSecond& rate, int64_t to) {
  if (to != kUnlimitedRate) rate = BytesPerSecond(std::min(RateOrUnlimited(rate), to));
}

// The part of an uplink that each of the devices behind it has.
void LimitToShare(BytesPerSecond& rate, BytesPerSecond uplink, size_t devices) {
  const int64_t whole = RateOrUnlimited(uplink);
  if (whole != kUnlimitedRate) {
    Limit(rate, std::max<int64_t>(1, whole / static_cast<int64_t>(devices)));
  }
}

BytesPerSecond Either(BytesPerSecond both, BytesPerSecond alone) {
  return both > BytesPerSecond(0) ? both : alone;
}

// Unlimited if one of the links is; 0 without links.
int64_t SumOfLinks(const Topology& topology, DeviceId device, bool out) {
  int64_t sum = 0;
  for (const TopologyLink& link : topology.links) {
    if ((out ? link.from : link.to) != device) continue;
    const int64_t rate = RateOrUnlimited(link.rate);
    sum = sum > kUnlimitedRate - rate ? kUnlimitedRate : sum + rate;
  }
  return sum;
}

}  // namespace

absl::StatusOr<ServerRates> RatesOf(const Topology& topology) {
  ServerRates rates{.devices = DeviceCount(topology)};
  bool linked = true;
  for (int index = 0; index < rates.devices; ++index) {
    const DeviceId device(index);
    const std::optional<int> behind = SwitchOf(topology, device);
    if (!behind) {
      return absl::InvalidArgumentError(
          absl::StrCat("topology ", topology.name, ": device ", index, " has no way to the host"));
    }
    const PcieSwitch& uplink = topology.switches[*behind];
    const size_t sharing = uplink.devices.size();
    LimitToShare(rates.to_host, uplink.to_host, sharing);
    LimitToShare(rates.from_host, uplink.from_host, sharing);
    LimitToShare(rates.to_host_both, Either(uplink.to_host_both, uplink.to_host), sharing);
    LimitToShare(rates.from_host_both, Either(uplink.from_host_both, uplink.from_host), sharing);
    const int64_t out = SumOfLinks(topology, device, /*out=*/true);
    const int64_t in = SumOfLinks(topology, device, /*out=*/false);
    linked = linked && out > 0 && in > 0;
    Limit(rates.collective, std::min(out, in));
    Limit(rates.collective, RateOrUnlimited(topology.devices[index].egress));
    Limit(rates.collective, RateOrUnlimited(topology.devices[index].ingress));
  }
  if (!linked && rates.devices > 1) {
    rates.collective = std::min(rates.to_host_both, rates.from_host_both);
  }
  for (const NvmeDrive& drive : topology.drives) {
    rates.drives_read += drive.read;
    rates.drives_write += drive.write;
  }
  return rates;
}

Nanos TimeFor(Bytes bytes, BytesPerSecond rate) {
  if (rate <= BytesPerSecond(0)) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 scaled = absl::int128(bytes.value) * kNanosPerSecond;
  return Nanos(static_cast<int64_t>((scaled + rate.value - 1) / rate.value));
}

}  // namespace siphon
