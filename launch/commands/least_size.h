#ifndef SIPHON_LAUNCH_COMMANDS_LEAST_SIZE_H_
#define SIPHON_LAUNCH_COMMANDS_LEAST_SIZE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace siphon {

// What was found with a size, and how much of it was used.
template <typename Found>
struct SizeTried {
  Found found;
  int64_t used = 0;
};

// The least size of which `attempt` finds anything, to one in this many, or to a single one: a
// small share of what is asked for, and few attempts.
inline constexpr int64_t kSizeExactness = 100;

// Where `attempt` finds something with a size, it is taken to do so with each larger one. By
// bisection of ratios, and where it used less than it had, by trying that; what is returned was
// attempted itself. None where `enough` is not. Requires: 0 <= too_little < enough.
template <typename Found>
std::optional<SizeTried<Found>> LeastSize(
    int64_t too_little, int64_t enough,
    const std::function<std::optional<SizeTried<Found>>(int64_t)>& attempt) {
  std::optional<SizeTried<Found>> best = attempt(enough);
  if (!best.has_value()) return std::nullopt;
  bool may_shrink = true;
  while (true) {
    const int64_t exact = std::max<int64_t>(1, enough / kSizeExactness);
    if (enough - too_little <= exact) return best;
    const bool shrinks =
        std::exchange(may_shrink, false) && best->used > too_little && best->used + exact < enough;
    const double ratio = std::sqrt(static_cast<double>(std::max<int64_t>(1, too_little)) *
                                   static_cast<double>(enough));
    const int64_t size =
        std::clamp(shrinks ? best->used : static_cast<int64_t>(ratio), too_little + 1, enough - 1);
    std::optional<SizeTried<Found>> tried = attempt(size);
    if (!tried.has_value()) {
      too_little = size;
      continue;
    }
    best = std::move(tried);
    enough = size;
    may_shrink = !shrinks;
  }
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_LEAST_SIZE_H_
