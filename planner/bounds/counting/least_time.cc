#include "planner/bounds/counting/least_time.h"

#include <cstdint>

namespace siphon {
namespace {

// Longer than any step: the simulator refuses what could come near.
constexpr Nanos kForever{int64_t{1} << 60};

}  // namespace

std::optional<Nanos> LeastTime(const std::function<bool(Nanos)>& enough) {
  if (!enough(kForever)) return std::nullopt;
  int64_t too_short = -1;
  int64_t long_enough = kForever.value;
  while (long_enough - too_short > 1) {
    const int64_t middle = too_short + (long_enough - too_short) / 2;
    (enough(Nanos(middle)) ? long_enough : too_short) = middle;
  }
  return Nanos(long_enough);
}

}  // namespace siphon
