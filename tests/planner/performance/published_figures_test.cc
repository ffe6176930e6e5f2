// Shapes of the out-of-core paper's figures, as its text describes them.

#include "planner/performance/published_figures.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "planner/performance/out_of_core_problem.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/performance/simulate_out_of_core.h"

namespace siphon {
namespace {

Figure Calculated(int number) {
  auto figure = PublishedFigure(number);
  EXPECT_TRUE(figure.ok()) << figure.status();
  return figure.ok() ? *std::move(figure) : Figure{};
}

double At(const Figure& figure, size_t series, double x) {
  for (size_t index = 0; index < figure.x.size(); ++index) {
    if (figure.x[index] == x) return figure.series[series].values[index].value_or(-1);
  }
  ADD_FAILURE() << "figure " << figure.number << " has no point at " << x;
  return -1;
}

TEST(Figure5, OutOfCoreIsSlowerAtEveryBatchAlsoWhereTheJobFits) {
  const Figure figure = Calculated(5);
  int fitting = 0;
  double ratio_before = 0;
  for (size_t point = 0; point < figure.x.size(); ++point) {
    const auto& off = figure.series[0].values[point];
    const auto& on = figure.series[1].values[point];
    ASSERT_TRUE(on.has_value()) << figure.x[point];
    if (!off) continue;
    ++fitting;
    EXPECT_GT(*on, 2 * *off) << figure.x[point];
    // "As the input size grows, the swapping time will be much longer than computing time."
    EXPECT_GT(*on / *off, ratio_before) << figure.x[point];
    ratio_before = *on / *off;
    // A good system declines.
    EXPECT_EQ(figure.series[2].values[point], off);
  }
  EXPECT_GE(fitting, 8);
  EXPECT_LT(fitting, static_cast<int>(figure.x.size()));
}

TEST(Figure7, ThroughputFallsOnceTheBatchOutgrowsMemory) {
  const Figure figure = Calculated(7);
  double before = 0;
  bool out_of_memory = false;
  for (size_t point = 0; point < figure.x.size(); ++point) {
    const double faults = *figure.series[1].values[point];
    if (figure.series[0].values[point]) {
      EXPECT_FALSE(out_of_memory);
      EXPECT_EQ(faults, *figure.series[0].values[point]);
      EXPECT_GT(faults, before * 0.99);
    } else {
      EXPECT_LT(faults, before);
      out_of_memory = true;
    }
    before = faults;
  }
  EXPECT_TRUE(out_of_memory);
}

TEST(Figure7, PrefetchGivesAboutAThirdMore) {
  const Figure figure = Calculated(7);
  // "Only by about 35 %".
  for (const double batch : {256.0, 320.0, 384.0, 512.0}) {
    EXPECT_NEAR(At(figure, 2, batch) / At(figure, 1, batch), 1.35, 0.04) << batch;
  }
}

TEST(Figure7, BothEndAtAConstant) {
  const Figure figure = Calculated(7);
  for (const size_t series : {size_t{1}, size_t{2}}) {
    const double first_fall = At(figure, series, 176) / At(figure, series, 256);
    const double last_fall = At(figure, series, 512) / At(figure, series, 1024);
    EXPECT_GT(first_fall, 2.5);
    EXPECT_LT(last_fall, 1.3);
  }
}

TEST(Figure7, TheConstantIsSetByTheLink) {
  ModelOptions options;
  options.kind = "resnet50";
  const DeviceSpec device = *FindDeviceSpec("V100");
  const auto profile =
      ProfileFromFirstPrinciples(*BuildModelSpec(options), device, 1024, Precision::kFloat32);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto seconds = [&](absl::string_view strategy, int64_t times) {
    const BytesPerSecond link(device.host_link.value * times);
    const auto problem = OutOfCoreProblemOf(*profile, {link, link, Nanos(7'000)}, device.capacity);
    const auto step = SimulateOutOfCore(*FindOutOfCoreStrategy(strategy), *problem);
    return static_cast<double>(step->step_time.value) * 1e-9;
  };
  for (const char* strategy : {"unified_memory", "unified_memory_prefetch"}) {
    EXPECT_NEAR(seconds(strategy, 1) / seconds(strategy, 2), 2.0, 0.2) << strategy;
  }
}

TEST(Figure8, TimeFallsToThatInMemoryAndThenStops) {
  const Figure figure = Calculated(8);
  for (const FigureSeries& series : figure.series) {
    SCOPED_TRACE(series.name);
    double before = 1e9;
    for (const auto& value : series.values) {
      ASSERT_TRUE(value.has_value());
      EXPECT_LE(*value, before);
      EXPECT_GE(*value, 1.0);
      before = *value;
    }
    EXPECT_GT(*series.values.front(), 4.0);
    EXPECT_LT(*series.values.back(), 1.01);
    // Twice 2 GB/s saves more than a third, twice 128 GB/s nearly nothing.
    EXPECT_LT(*series.values[2], 0.67 * *series.values[0]);
    EXPECT_GT(*series.values.back(), 0.97 * *series.values[12]);
  }
}

TEST(Figure8, WhereTheLinkIsSlowEachStrategyBeatsTheOneBefore) {
  const Figure figure = Calculated(8);
  for (const double gigabytes : {4.0, 8.0, 12.0}) {
    EXPECT_LT(At(figure, 1, gigabytes), At(figure, 0, gigabytes));
    EXPECT_LT(At(figure, 2, gigabytes), At(figure, 1, gigabytes));
  }
}

TEST(PublishedFigures, EveryOneHasAValueOrNothingForEachX) {
  for (const int number : PublishedFigureNumbers()) {
    const Figure figure = Calculated(number);
    EXPECT_EQ(figure.number, number);
    EXPECT_FALSE(figure.findings.empty());
    for (const FigureSeries& series : figure.series) {
      EXPECT_EQ(series.values.size(), figure.x.size());
    }
  }
}

TEST(PublishedFigures, OthersAreNotCalculated) {
  EXPECT_EQ(PublishedFigure(6).status().message(),
            "figure 6 of the out-of-core paper is not calculated; known: 5, 7, 8");
}

}  // namespace
}  // namespace siphon
