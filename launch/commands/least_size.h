#ifndef SIPHON_LAUNCH_COMMANDS_LEAST_SIZE_H_
#define SIPHON_LAUNCH_COMMANDS_LEAST_SIZE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace siphon {

// What came of a size.
template <typename Found>
struct SizeTried {
  std::optional<Found> found;
  // How much of the size was used; where nothing was found, what may be enough. 0: not known.
  int64_t needs = 0;
};

// Sizes among which the least one is looked for.
struct SizeRange {
  int64_t too_little = 0;
  int64_t enough = 0;
  int64_t likely = 0;  // what may be enough, more or less; 0: not known
};

// The least size of which `attempt` finds anything, to one in this many, or to a single one: a
// small share of what is asked for, and few attempts.
inline constexpr int64_t kSizeExactness = 100;

// Where `attempt` finds something with a size, it is taken to do so with each larger one. Attempts
// that find nothing are taken to cost most: so the first sizes are those that are likely to be
// enough, and a hundredth less than one of them that was; the others are by bisection of ratios,
// and where one used less than it had, what it used. What is returned was attempted itself. None
// where `range.enough` is not. Requires: 0 <= too_little < enough.
template <typename Found>
std::optional<Found> LeastSize(SizeRange range,
                               const std::function<SizeTried<Found>(int64_t)>& attempt) {
  std::optional<Found> best;
  int64_t used = 0;  // by the best
  int64_t step = 0;  // down from the best; 0: by bisection
  bool may_shrink = true;
  while (true) {
    const int64_t exact = std::max<int64_t>(1, range.enough / kSizeExactness);
    if (best.has_value() && range.enough - range.too_little <= exact) return best;
    const int64_t below = range.enough - (best.has_value() ? exact : 1);
    // A little more, as they are no promises.
    const int64_t likely = range.likely + (range.likely + kSizeExactness - 1) / kSizeExactness;
    const bool guesses = range.likely > 0 && range.too_little < range.likely && likely <= below;
    range.likely = 0;
    const bool shrinks = !guesses && best.has_value() && std::exchange(may_shrink, false) &&
                         used > range.too_little && used < below;
    int64_t size = range.enough;
    if (guesses) {
      size = likely;
    } else if (shrinks) {
      size = used;
    } else if (best.has_value()) {
      const double ratio = std::sqrt(static_cast<double>(std::max<int64_t>(1, range.too_little)) *
                                     static_cast<double>(range.enough));
      size = std::clamp(std::max(static_cast<int64_t>(ratio), step > 0 ? range.enough - step : 0),
                        range.too_little + 1, range.enough - 1);
    }
    SizeTried<Found> tried = attempt(size);
    if (!tried.found.has_value()) {
      if (size == range.enough) return std::nullopt;
      range.too_little = size;
      range.likely = tried.needs;
      step = 0;
      continue;
    }
    step = guesses ? std::max<int64_t>(1, size / kSizeExactness) : 2 * step;
    best = std::move(tried.found);
    used = tried.needs;
    range.enough = size;
    may_shrink = !shrinks;
  }
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_LEAST_SIZE_H_
