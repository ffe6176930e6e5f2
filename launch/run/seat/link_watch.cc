#include "launch/run/seat/link_watch.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;

Nanos PlannedTime(const LinkState& link) {
  const double moving = static_cast<double>(link.use.bytes.value) * kNanosPerSecond /
                        static_cast<double>(link.planned.rate.value);
  return link.planned.latency * link.use.copies + Nanos(static_cast<int64_t>(moving));
}

double Ratio(Nanos a, Nanos b) {
  return static_cast<double>(a.value) / static_cast<double>(b.value);
}

}  // namespace

std::optional<SlowLink> LinkWatch::Note(const std::vector<LinkState>& links, Nanos step) {
  std::optional<SlowLink> slowest;
  for (const LinkState& link : links) {
    if (link.planned.rate.value == 0 || link.use.copies == 0) continue;
    Slowness& slowness = slow_[link.place];
    const Nanos planned = PlannedTime(link);
    const bool slow = planned > Nanos(0) && Ratio(link.use.time, planned) > kFactor &&
                      Ratio(link.use.time - planned, step) > kLeastPart;
    if (!slow) {
      slowness = {.named = slowness.named};
      continue;
    }
    ++slowness.steps;
    slowness.planned += planned;
    slowness.taken += link.use.time;
    if (slowness.steps < kSteps || slowness.named) continue;
    const SlowLink found{link.place, Ratio(slowness.taken, slowness.planned)};
    if (!slowest.has_value() || found.factor > slowest->factor) slowest = found;
  }
  if (slowest.has_value()) slow_.at(slowest->place).named = true;
  return slowest;
}

}  // namespace siphon
