#ifndef SIPHON_PLANNER_BOUNDS_LEAST_TIME_H_
#define SIPHON_PLANNER_BOUNDS_LEAST_TIME_H_

#include <functional>
#include <optional>

#include "planner/units.h"

namespace siphon {

// The least time at which `enough` holds; none where no step is long enough. Requires: where it
// holds it does at all later times, too.
std::optional<Nanos> LeastTime(const std::function<bool(Nanos)>& enough);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_LEAST_TIME_H_
