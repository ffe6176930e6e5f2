#ifndef SIPHON_LAUNCH_OUTPUT_FIGURE_TEXT_H_
#define SIPHON_LAUNCH_OUTPUT_FIGURE_TEXT_H_

#include <string>

namespace siphon {

// A rate such as tokens a second, for people: "19720", "104.2", "3.214", "0.0052": whole from 1000
// on, four digits below, never an exponent. Requires: finite, not negative.
std::string FigureText(double figure);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_FIGURE_TEXT_H_
