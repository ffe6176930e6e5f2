#include "launch/run/parking/parking_routes.h"

#include <algorithm>

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;

// In nanoseconds.
double TimeAt(const CopyLinkRate& speed, const CopyLinkUse& use) {
  return static_cast<double>(speed.latency.value) * static_cast<double>(use.copies) +
         static_cast<double>(use.bytes.value) * kNanosPerSecond /
             static_cast<double>(speed.rate.value);
}

}  // namespace

BytesPerSecond SlowerRate(BytesPerSecond a, BytesPerSecond b) {
  if (a == BytesPerSecond(0) || b == BytesPerSecond(0)) return std::max(a, b);
  return std::min(a, b);
}

std::optional<TwoRoutes> RoutesTo(const TopologyWays& ways, DeviceId owner,
                                  const ParkingPlace& place) {
  std::optional<LinkRoute> out, in;
  if (place.tier == Placement::kPeerSwap) {
    out = ways.ToLender(owner, place.lender);
    in = ways.FromLender(owner, place.lender);
  } else if (place.tier == Placement::kNvmeSwap) {
    out = ways.ToDrive(owner);
    in = ways.FromDrive(owner);
  } else {
    out = ways.ToHost(owner);
    in = ways.FromHost(owner);
  }
  if (!out.has_value() || !in.has_value()) return std::nullopt;
  return TwoRoutes{*std::move(out), *std::move(in)};
}

CopyLinkRate PlannedRate(const TopologyWays& ways, DeviceId owner, const ParkingPlace& place,
                         const TwoRoutes& routes, int lenders) {
  const int users = place.tier == Placement::kPeerSwap ? ways.PeersAtEngine(lenders)
                                                       : ways.DevicesAtUplink(owner);
  const BytesPerSecond rate = SlowerRate(routes.out.speed.rate, routes.in.speed.rate);
  return {BytesPerSecond(rate.value / std::max(users, 1)),
          std::max(routes.out.speed.latency, routes.in.speed.latency)};
}

double PaceOfLink(const TopologyWays& ways, DeviceId owner, const PlaceUse& used, int lenders) {
  const std::optional<TwoRoutes> routes = RoutesTo(ways, owner, used.place);
  if (!routes.has_value() || used.use.bytes == Bytes(0)) return 1;
  const CopyLinkRate planned = PlannedRate(ways, owner, used.place, *routes, lenders);
  const BytesPerSecond out = routes->out.speed.rate, in = routes->in.speed.rate;
  if (planned.rate.value == 0 || out.value == 0 || in.value == 0) return 1;
  const CopyLinkRate whole{std::max(out, in),
                           std::min(routes->out.speed.latency, routes->in.speed.latency)};
  const auto took = static_cast<double>(used.use.time.value);
  return std::max(1.0, took / TimeAt(planned, used.use)) *
         std::min(1.0, took / TimeAt(whole, used.use));
}

}  // namespace siphon
