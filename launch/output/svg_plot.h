#ifndef SIPHON_LAUNCH_OUTPUT_SVG_PLOT_H_
#define SIPHON_LAUNCH_OUTPUT_SVG_PLOT_H_

#include <optional>
#include <string>
#include <vector>

namespace siphon {

struct PlotSeries {
  std::string name;
  std::vector<std::optional<double>> y;  // [x]; a line is interrupted where there is nothing
};

enum class PlotScale { kLinear, kLogarithmic };

// Lines over a common x.
struct LinePlot {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  PlotScale x_scale = PlotScale::kLinear;
  std::vector<double> x;  // ascending; positive on a logarithmic scale
  std::vector<PlotSeries> series;
  std::vector<std::string> notes;  // sentences under the plot
};

// The plot as one self-contained SVG file: no width of its own, so that it fills a page or a phone;
// light or dark as the reader prefers; the values of each point as a tooltip. The y axis starts at
// 0. Pure: the same plot gives the same text.
// Requires: x is not empty and each series has a value or nothing for each x.
std::string SvgLinePlot(const LinePlot& plot);

// About `count` round numbers (1, 2 or 5 times a power of ten) that span [low, high].
std::vector<double> RoundTicks(double low, double high, int count);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_SVG_PLOT_H_
