#ifndef SIPHON_LAUNCH_OUTPUT_TIME_SCALE_H_
#define SIPHON_LAUNCH_OUTPUT_TIME_SCALE_H_

#include <string>
#include <vector>

#include "planner/units.h"

namespace siphon {

struct TimeTick {
  Nanos time;
  std::string text;  // "2.5 ms"
};

// Where to write times below or above [0, span]: multiples of 1, 2 or 5 times a power of ten, at
// most 9 of them, 0 first.
std::vector<TimeTick> TicksOf(Nanos span);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TIME_SCALE_H_
