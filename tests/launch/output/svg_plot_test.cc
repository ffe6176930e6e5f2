#include "launch/output/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace siphon {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

LinePlot TwoLines() {
  return {.title = "A & B",
          .subtitle = "calculated",
          .x_label = "batch",
          .y_label = "seconds",
          .x = {0, 5, 10},
          .series = {{"first", {0.0, 1.0, 2.0}}, {"second <>", {2.0, std::nullopt, 1.0}}}};
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SvgPlot, DrawsEachPointWhereItsValueIs) {
  const std::string svg = SvgLinePlot(TwoLines());
  // The plot spans x 48 to 388 for 0 to 10 and 220 units from 0 to 2; its top is at 65.
  EXPECT_THAT(svg,
              HasSubstr("<path class=\"line s0\" d=\"M48.0 285.0 L218.0 175.0 L388.0 65.0\"/>"));
  EXPECT_THAT(svg, HasSubstr("<title>first: 1 at 5</title>"));
}

TEST(SvgPlot, InterruptsALineWhereThereIsNothing) {
  const std::string svg = SvgLinePlot(TwoLines());
  EXPECT_THAT(svg, HasSubstr("<path class=\"line s1\" d=\"M48.0 65.0 M388.0 175.0\"/>"));
  EXPECT_EQ(CountOf(svg, "<circle"), 5u);
}

TEST(SvgPlot, FitsAPhoneAndTheDark) {
  const std::string svg = SvgLinePlot(TwoLines());
  EXPECT_TRUE(
      absl::StartsWith(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 400 "));
  const std::string head = svg.substr(0, svg.find('>'));
  EXPECT_THAT(head, Not(HasSubstr(" width=")));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));  // nothing from elsewhere
}

TEST(SvgPlot, WritesTextThatMeansItself) {
  const std::string svg = SvgLinePlot(TwoLines());
  EXPECT_THAT(svg, HasSubstr("A &amp; B"));
  EXPECT_THAT(svg, HasSubstr("second &lt;&gt;"));
  EXPECT_EQ(CountOf(svg, "<text"), CountOf(svg, "</text>"));
  EXPECT_TRUE(absl::EndsWith(svg, "</svg>\n"));
}

TEST(SvgPlot, WrapsLongNotesIntoTheWidth) {
  LinePlot plot = TwoLines();
  const size_t lines = CountOf(SvgLinePlot(plot), "<text");
  plot.notes = {std::string(60, 'a') + " " + std::string(60, 'b')};
  EXPECT_EQ(CountOf(SvgLinePlot(plot), "<text"), lines + 2);
}

TEST(SvgPlot, PutsPowersAtEqualDistancesOnALogarithmicScale) {
  LinePlot plot = TwoLines();
  plot.x_scale = PlotScale::kLogarithmic;
  plot.x = {1, 10, 100};
  EXPECT_THAT(SvgLinePlot(plot), HasSubstr("M48.0 285.0 L218.0 175.0 L388.0 65.0"));
}

TEST(SvgPlot, OnePointOfZeroIsAPlot) {
  const std::string svg = SvgLinePlot({.title = "t", .x = {0}, .series = {{"s", {0.0}}}});
  EXPECT_THAT(svg, HasSubstr("cx=\"48.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(RoundTicks, AreRoundAndSpanTheRange) {
  EXPECT_THAT(RoundTicks(0, 7.3, 5), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(RoundTicks(0, 1000, 5), ElementsAre(0, 200, 400, 600, 800, 1000));
  EXPECT_THAT(RoundTicks(0, 0.31, 5), ElementsAre(0, DoubleNear(0.1, 1e-9), DoubleNear(0.2, 1e-9),
                                                  DoubleNear(0.3, 1e-9), DoubleNear(0.4, 1e-9)));
}

TEST(RoundTicks, OfAnEmptyRangeAreTwo) {
  EXPECT_THAT(RoundTicks(3, 3, 5), ElementsAre(3, 4));
  EXPECT_THAT(RoundTicks(0, std::numeric_limits<double>::infinity(), 5), testing::SizeIs(2));
}

}  // namespace
}  // namespace siphon
