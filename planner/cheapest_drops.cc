#include "planner/cheapest_drops.h"

#include <cstddef>

#include "absl/numeric/int128.h"

namespace siphon {
namespace {

// Whether `middle` is not below the straight line from `from` to `to`, bytes to the right.
bool IsNoCheaper(const DropStep& from, const DropStep& middle, const DropStep& to) {
  const absl::int128 rise = (middle.recompute - from.recompute).value;
  const absl::int128 whole_rise = (to.recompute - from.recompute).value;
  return rise * (to.bytes - from.bytes).value >= whole_rise * (middle.bytes - from.bytes).value;
}

}  // namespace

std::vector<DropStep> PossibleDrops(const LayerProfile& layer, Bytes all) {
  std::vector<DropStep> drops;
  Bytes bytes;
  int counted = 0;
  for (const int count : FirstTensorsOf(layer)) {
    for (; counted < count; ++counted) bytes += layer.saved[static_cast<size_t>(counted)].bytes;
    if (bytes < all) drops.push_back({count, bytes, RecomputeTime(layer, count)});
  }
  if (all > Bytes(0)) drops.push_back({0, all, RecomputeTime(layer)});
  return drops;
}

std::vector<DropStep> CheapestDrops(const LayerProfile& layer, Bytes all) {
  std::vector<DropStep> hull(1);  // nothing, for no time
  for (const DropStep& step : PossibleDrops(layer, all)) {
    if (step.bytes <= hull.back().bytes) continue;
    while (hull.size() > 1 && IsNoCheaper(hull[hull.size() - 2], hull.back(), step)) {
      hull.pop_back();
    }
    hull.push_back(step);
  }
  hull.erase(hull.begin());
  return hull;
}

}  // namespace siphon
