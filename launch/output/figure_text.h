#ifndef SIPHON_LAUNCH_OUTPUT_FIGURE_TEXT_H_
#define SIPHON_LAUNCH_OUTPUT_FIGURE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// "1 worker", "4 workers", "2 microbatches".
std::string CountText(int64_t count, absl::string_view thing);

// A rate such as tokens a second, for people: "19720", "104.2", "3.214", "0.0052": whole from 1000
// on, four digits below, never an exponent. Requires: finite, not negative.
std::string FigureText(double figure);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_FIGURE_TEXT_H_
