#ifndef SIPHON_LAUNCH_OUTPUT_MEMORY_COLUMNS_H_
#define SIPHON_LAUNCH_OUTPUT_MEMORY_COLUMNS_H_

#include <functional>
#include <string>
#include <vector>

#include "planner/simulator/simulated_step.h"
#include "planner/units.h"

namespace siphon {

// The curve as `columns` columns of equal time over [0, span]: what is held in each at the moment
// of its largest total. O(points + columns).
std::vector<MemoryByKind> MemoryColumns(const MemoryCurve& curve, Nanos span, int columns);

// The upper outline of the first `kinds` kinds together as commands of an SVG path, one unit a
// column from `left` on; `y` gives the height of a sum of bytes. Empty where the last of these
// kinds has no bytes in any column.
std::string MemoryOutline(const std::vector<MemoryByKind>& columns, size_t kinds, int left,
                          const std::function<double(Bytes)>& y);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_MEMORY_COLUMNS_H_
