#ifndef SIPHON_LAUNCH_OUTPUT_ACTION_COLORS_H_
#define SIPHON_LAUNCH_OUTPUT_ACTION_COLORS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "planner/timeline.h"

namespace siphon {

// One colour a kind of action, the same in every picture: traces, SVG, HTML and terminals.
struct ActionColor {
  absl::string_view css_class;   // "F", "wait", ...
  absl::string_view meaning;     // "forward"
  absl::string_view hex;         // "#4387fd"
  absl::string_view trace_name;  // the palette entry of trace viewers with this colour
  int terminal = 0;              // of the 256 colours of a terminal, the nearest
  char letter = ' ';             // fills a cell where there are no colours
};

// All of them, in the order of a legend.
const std::vector<ActionColor>& ActionColors();
const ActionColor& ColorOf(const Interval& interval);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_ACTION_COLORS_H_
