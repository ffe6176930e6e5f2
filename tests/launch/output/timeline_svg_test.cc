#include "launch/output/timeline_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "launch/output/memory_columns.h"
#include "launch/output/time_scale.h"
#include "launch/output/xml_text.h"
#include "tests/launch/output/timeline_testing.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t CountOf(absl::string_view part, absl::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != absl::string_view::npos; at += part.size()) {
    ++count;
  }
  return count;
}

TEST(TimelineSvg, DrawsEachActionAtItsTimeInItsColour) {
  const std::string svg = TimelineSvg(PictureOf(SmallStep(), {}, "a step"));
  // Names of 29 letters, so 772 units for 80 ns from 174 on: 0B0 is [50, 70).
  EXPECT_THAT(svg, HasSubstr("<rect class=\"B\" x=\"656.50\" y=\"46\" width=\"192.40\" "
                             "height=\"24\"><title>0B0: 20 ns, from 50 ns</title></rect>"));
  EXPECT_THAT(svg, HasSubstr("<title>wait for 1F0: 15 ns, from 0 ns</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>0SEND_F0: 5 ns, from 10 ns</title>"));
  EXPECT_THAT(svg, HasSubstr(".siphon .F{fill:#4387fd}"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
}

TEST(TimelineSvg, DrawsMemoryBelowWithItsPeakAndCapacity) {
  const std::string svg = TimelineSvg(PictureOf(SmallStep(), {Bytes(8000), Bytes()}, "a step"));
  EXPECT_THAT(svg, HasSubstr("peak 3.91 KiB"));
  EXPECT_THAT(svg, HasSubstr("<title>worker 0: activations</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("<title>worker 1: activations</title>")));
  EXPECT_EQ(CountOf("<title>capacity 7.81 KiB</title>", svg), 1u);
}

// Each on a scale of its own: a host has hundreds of times as much as a device.
TEST(TimelineSvg, DrawsMemoryElsewhereBelowThat) {
  SimulatedStep step = SmallStep();
  step.other_memory = {{"the host", step.memory[0], Bytes(8'000'000)},
                       {"device 5", step.memory[0], Bytes(0)}};
  const std::string without = TimelineSvg(PictureOf(SmallStep(), {}, "a step"));
  EXPECT_THAT(without, Not(HasSubstr("elsewhere")));
  const std::string svg = TimelineSvg(PictureOf(step, {}, "a step"));
  EXPECT_THAT(svg, HasSubstr("memory, each up to 3.91 KiB"));
  EXPECT_THAT(svg, HasSubstr("memory elsewhere"));
  EXPECT_THAT(svg, HasSubstr("<title>the host: activations</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>device 5: activations</title>"));
  EXPECT_EQ(CountOf("<title>capacity 7.63 MiB</title>", svg), 1u);
}

TEST(TimelineSvg, StaysSmallWithManyActions) {
  TimelinePicture picture{.span = Nanos(2'000'000)};
  TimelineRow row{.name = "busy"};
  for (int i = 0; i < 200'000; ++i) {
    row.intervals.push_back(BusyWith(i % 3 == 0 ? "0F1" : "0B1", i * 10, i * 10 + 9));
  }
  picture.rows = {row};
  MemoryRow memory{.name = "busy"};
  for (int i = 0; i < 200'000; ++i) {
    MemoryByKind held;
    held[MemoryKind::kActivations] = Bytes(1 + i % 7);
    memory.curve.push_back({Nanos(i * 10), held});
  }
  picture.memory = {memory};
  const std::string svg = TimelineSvg(picture);
  EXPECT_LT(svg.size(), 300'000u);
  EXPECT_THAT(svg, HasSubstr("short actions, from"));
}

TEST(TimelineSvg, WritesNamesSoThatTheyMeanThemselves) {
  EXPECT_EQ(XmlText("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(XmlText("\x01\xff\xc3\xa9"), "??\xc3\xa9");
  EXPECT_THAT(TimelineSvg({.title = "<script>", .rows = {{"</svg>", {}}}}),
              Not(HasSubstr("<script>")));
}

TEST(MemoryColumns, KeepTheLargestMomentOfEachColumn) {
  const auto held = [](int64_t bytes) {
    MemoryByKind memory;
    memory[MemoryKind::kWorkspace] = Bytes(bytes);
    return memory;
  };
  // Columns of 10 ns: a peak inside one; a value that lasts; a change exactly between two.
  const MemoryCurve curve = {{Nanos(0), held(1)},
                             {Nanos(12), held(9)},
                             {Nanos(15), held(2)},
                             {Nanos(30), held(5)},
                             {Nanos(40), held(0)}};
  std::vector<int64_t> totals;
  for (const MemoryByKind& column : MemoryColumns(curve, Nanos(50), 5)) {
    totals.push_back(Total(column).value);
  }
  EXPECT_THAT(totals, testing::ElementsAre(1, 9, 2, 5, 0));
}

TEST(TimeScale, HasRoundTimes) {
  std::vector<std::string> texts;
  for (const TimeTick& tick : TicksOf(Nanos(41'000'000))) texts.push_back(tick.text);
  EXPECT_THAT(texts, testing::ElementsAre("0", "5 ms", "10 ms", "15 ms", "20 ms", "25 ms", "30 ms",
                                          "35 ms", "40 ms"));
  EXPECT_EQ(TicksOf(Nanos(0)).size(), 1u);
  EXPECT_EQ(TicksOf(Nanos(1'500)).back().text, "1.4 us");
}

TEST(TimeScale, NeverCrowds) {
  for (int64_t span = 1; span < INT64_MAX / 7; span = span * 7 / 2 + 1) {
    const std::vector<TimeTick> ticks = TicksOf(Nanos(span));
    EXPECT_LE(ticks.size(), 9u) << span;
    EXPECT_LE(ticks.back().time, Nanos(span));
    EXPECT_GE(ticks.size(), span >= 4 ? 4u : 2u) << span;
  }
}

}  // namespace
}  // namespace siphon
