#include "launch/output/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launch/output/xml_text.h"
#include "planner/status.h"

namespace siphon {
namespace {

// In units of the view box, which is as wide as a phone, so that text is readable there.
constexpr double kWidth = 400;
constexpr double kLeft = 48;
constexpr double kRight = 388;
constexpr double kPlotHeight = 220;
constexpr double kLineHeight = 15;
constexpr size_t kLineLetters = 66;  // of small text in the whole width
constexpr size_t kSeriesStyles = 5;

constexpr absl::string_view kStyle = R"(<style>
  svg { background: #fff; }
  text { font: 11px system-ui, sans-serif; fill: #222; }
  .title { font-size: 15px; font-weight: 600; }
  .quiet { fill: #555; }
  .grid { stroke: #ddd; }
  .axis { stroke: #555; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .s0 { stroke: #0b62c4; } .s1 { stroke: #b8430b; stroke-dasharray: 6 3; }
  .s2 { stroke: #15753a; stroke-dasharray: 2 3; } .s3 { stroke: #7a2bc0; stroke-dasharray: 8 3 2 3; }
  .s4 { stroke: #a01c50; stroke-dasharray: 12 4; }
  circle { stroke-width: 4; stroke-dasharray: none !important; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; }
    text { fill: #e6e6e6; } .quiet { fill: #a8adb5; }
    .grid { stroke: #33373d; } .axis { stroke: #a8adb5; }
    .s0 { stroke: #6cb2ff; } .s1 { stroke: #ff9d66; } .s2 { stroke: #6ee7a0; }
    .s3 { stroke: #d2a8ff; } .s4 { stroke: #ff8fb0; }
  }
</style>
)";

std::vector<std::string> Wrapped(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > kLineLetters) {
      lines.emplace_back(word);
    } else {
      absl::StrAppend(&lines.back(), " ", word);
    }
  }
  return lines;
}

// Positions of values along one axis.
struct Axis {
  PlotScale scale = PlotScale::kLinear;
  double low = 0;
  double high = 1;
  double begin = 0;  // where `low` is
  double end = 1;

  double At(double value) const {
    const bool log = scale == PlotScale::kLogarithmic;
    const double from = log ? std::log(low) : low;
    const double to = log ? std::log(high) : high;
    const double share = ((log ? std::log(value) : value) - from) / (to - from);
    return begin + share * (end - begin);
  }
};

// 1, 2 and 5 times each power of ten within the axis.
std::vector<double> LogarithmicTicks(const Axis& axis) {
  std::vector<double> ticks;
  const double first = std::pow(10, std::floor(std::log10(axis.low)));
  for (double decade = first; decade <= axis.high; decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = decade * digit;
      if (tick >= axis.low && tick <= axis.high) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> Ticks(const Axis& axis) {
  if (axis.scale == PlotScale::kLogarithmic) return LogarithmicTicks(axis);
  std::vector<double> ticks = RoundTicks(axis.low, axis.high, 6);
  std::erase_if(ticks, [&](double tick) { return tick < axis.low || tick > axis.high; });
  return ticks;
}

Axis HorizontalAxis(const LinePlot& plot) {
  Axis axis{plot.x_scale, plot.x.front(), plot.x.back(), kLeft, kRight};
  if (axis.scale == PlotScale::kLinear) axis.low = std::min(axis.low, 0.0);
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  return axis;
}

Axis VerticalAxis(const LinePlot& plot, double top) {
  double high = 0;
  for (const PlotSeries& series : plot.series) {
    for (const std::optional<double>& y : series.y) high = std::max(high, y.value_or(0));
  }
  if (high <= 0) high = 1;
  return {PlotScale::kLinear, 0, RoundTicks(0, high, 5).back(), top + kPlotHeight, top};
}

// Text lines one under the other; moves `y` below them.
void AppendLines(std::string* svg, const std::vector<std::string>& lines, absl::string_view style,
                 double x, double* y) {
  for (const std::string& line : lines) {
    *y += kLineHeight;
    absl::StrAppendFormat(svg, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", style, x, *y,
                          XmlText(line));
  }
}

void AppendAxes(std::string* svg, const LinePlot& plot, const Axis& x, const Axis& y) {
  for (const double tick : Ticks(y)) {
    absl::StrAppendFormat(
        svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", kLeft,
        kRight, y.At(tick), y.At(tick));
    absl::StrAppendFormat(
        svg, "<text class=\"quiet\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%g</text>\n",
        kLeft - 5, y.At(tick) + 4, tick);
  }
  for (const double tick : Ticks(x)) {
    absl::StrAppendFormat(
        svg, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x.At(tick),
        x.At(tick), y.begin, y.begin + 4);
    absl::StrAppendFormat(
        svg, "<text class=\"quiet\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%g</text>\n",
        x.At(tick), y.begin + 17, tick);
  }
  absl::StrAppendFormat(svg,
                        "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                        kLeft, kRight, y.begin, y.begin);
  absl::StrAppendFormat(svg, "<text text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                        (kLeft + kRight) / 2, y.begin + 34, XmlText(plot.x_label));
}

void AppendSeries(std::string* svg, const LinePlot& plot, const PlotSeries& series, size_t style,
                  const Axis& x, const Axis& y) {
  std::string path;
  std::string points;
  bool drawing = false;
  for (size_t index = 0; index < plot.x.size(); ++index) {
    const std::optional<double>& value = series.y[index];
    if (!value) {
      drawing = false;
      continue;
    }
    const double at_x = x.At(plot.x[index]);
    const double at_y = y.At(*value);
    absl::StrAppendFormat(&path, "%s%.1f %.1f", drawing ? " L" : " M", at_x, at_y);
    absl::StrAppendFormat(
        &points,
        "<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"1\"><title>%s</title></circle>\n", style,
        at_x, at_y, XmlText(absl::StrFormat("%s: %g at %g", series.name, *value, plot.x[index])));
    drawing = true;
  }
  if (path.empty()) return;
  absl::StrAppendFormat(svg, "<path class=\"line s%d\" d=\"%s\"/>\n", style, path.substr(1));
  absl::StrAppend(svg, points);
}

void AppendLegend(std::string* svg, const LinePlot& plot, double* y) {
  for (size_t index = 0; index < plot.series.size(); ++index) {
    *y += kLineHeight + 3;
    absl::StrAppendFormat(svg, "<path class=\"line s%d\" d=\"M%.1f %.1f L%.1f %.1f\"/>\n",
                          index % kSeriesStyles, kLeft, *y - 4, kLeft + 34, *y - 4);
    absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", kLeft + 42, *y,
                          XmlText(plot.series[index].name));
  }
}

}  // namespace

std::vector<double> RoundTicks(double low, double high, int count) {
  const double rough = (high - low) / std::max(count, 1);
  if (!(rough > 0) || !std::isfinite(rough)) return {low, low + 1};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double digit : {5.0, 2.0, 1.0}) {
    if (digit * power >= rough * (1 - 1e-9)) step = digit * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (double index = first; index <= last; ++index) ticks.push_back(index * step);
  return ticks;
}

std::string SvgLinePlot(const LinePlot& plot) {
  SIPHON_CHECK(!plot.x.empty(), "a plot has points");
  for (const PlotSeries& series : plot.series) {
    SIPHON_CHECK(series.y.size() == plot.x.size(), "a series has a value or nothing for each x");
  }
  std::string body;
  double y = 6;
  AppendLines(&body, {plot.title}, "title", 12, &y);
  AppendLines(&body, Wrapped(plot.subtitle), "quiet", 12, &y);
  y += 4;
  AppendLines(&body, {plot.y_label}, "", 12, &y);
  const Axis vertical = VerticalAxis(plot, y + 10);
  const Axis horizontal = HorizontalAxis(plot);
  AppendAxes(&body, plot, horizontal, vertical);
  for (size_t index = 0; index < plot.series.size(); ++index) {
    AppendSeries(&body, plot, plot.series[index], index % kSeriesStyles, horizontal, vertical);
  }
  y = vertical.begin + 38;
  AppendLegend(&body, plot, &y);
  y += 6;
  for (const std::string& note : plot.notes) {
    AppendLines(&body, Wrapped(note), "quiet", 12, &y);
    y += 4;
  }
  return absl::StrCat(
      absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
                      "role=\"img\" aria-label=\"%s\">\n",
                      kWidth, std::ceil(y + 10), XmlText(plot.title)),
      kStyle, body, "</svg>\n");
}

}  // namespace siphon
