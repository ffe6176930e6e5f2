#include "planner/performance/published_figures.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "planner/model_spec.h"
#include "planner/performance/out_of_core.h"
#include "planner/performance/out_of_core_problem.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/performance/simulate_out_of_core.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What a call of an asynchronous copy costs, measured: 5 to 7 us.
constexpr Nanos kCopyLatency(7'000);
constexpr absl::string_view kDevice = "V100";  // table 2 of the paper: DGX-1, 16 GB

absl::StatusOr<OutOfCoreProblem> ProblemOf(absl::string_view model, int64_t batch,
                                           BytesPerSecond link) {
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, FindDeviceSpec(kDevice));
  ModelOptions options;
  options.kind = std::string(model);
  SIPHON_ASSIGN_OR_RETURN(const ModelSpec spec, BuildModelSpec(options));
  SIPHON_ASSIGN_OR_RETURN(const ModelProfile profile,
                          ProfileFromFirstPrinciples(spec, device, batch, Precision::kFloat32));
  return OutOfCoreProblemOf(profile, {link, link, kCopyLatency}, device.capacity);
}

// Step time in seconds; nothing where the strategy does not fit.
absl::StatusOr<std::optional<double>> Seconds(absl::string_view strategy,
                                              const OutOfCoreProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const OutOfCoreStrategy found, FindOutOfCoreStrategy(strategy));
  const auto step = SimulateOutOfCore(found, problem);
  if (absl::IsResourceExhausted(step.status())) return std::optional<double>();
  SIPHON_RETURN_IF_ERROR(step.status());
  return std::optional<double>(static_cast<double>(step->step_time.value) * 1e-9);
}

struct NamedStrategy {
  const char* strategy;
  const char* name;
};

// One series a strategy; `value` makes a point's value of its step time.
template <typename MakeProblem, typename Value>
absl::Status FillSeries(Figure& figure, const std::vector<NamedStrategy>& strategies,
                        const MakeProblem& make_problem, const Value& value) {
  for (const NamedStrategy& strategy : strategies) figure.series.push_back({strategy.name, {}});
  for (const double x : figure.x) {
    SIPHON_ASSIGN_OR_RETURN(const OutOfCoreProblem problem, make_problem(x));
    for (size_t index = 0; index < strategies.size(); ++index) {
      SIPHON_ASSIGN_OR_RETURN(const std::optional<double> seconds,
                              Seconds(strategies[index].strategy, problem));
      std::optional<double> point;
      if (seconds) point = value(x, *seconds, problem);
      figure.series[index].values.push_back(point);
    }
  }
  return absl::OkStatus();
}

double LargestThatRuns(const Figure& figure, size_t series) {
  double largest = 0;
  for (size_t index = 0; index < figure.x.size(); ++index) {
    if (figure.series[series].values[index]) largest = figure.x[index];
  }
  return largest;
}

double LinkGigabytes(BytesPerSecond link) { return static_cast<double>(link.value) * 1e-9; }

absl::StatusOr<Figure> Figure5() {
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, FindDeviceSpec(kDevice));
  Figure figure{.number = 5,
                .title = "Out-of-core switched on and off",
                .setting = absl::StrFormat(
                    "ResNet-50, fp32, V100 16 GB, pinned copies at %.1f GB/s each way, calculated",
                    LinkGigabytes(device.host_link)),
                .x_label = "batch (images)",
                .y_label = "time of one iteration (s)",
                .x = {2, 4, 8, 16, 32, 48, 64, 96, 128, 160, 192}};
  SIPHON_RETURN_IF_ERROR(FillSeries(
      figure,
      {{"in_memory", "off"},
       {"vdnn", "on (vDNN-like)"},
       {"capacity_based", "a system that declines (capacity-based)"}},
      [&](double batch) {
        return ProblemOf("resnet50", static_cast<int64_t>(batch), device.host_link);
      },
      [](double, double seconds, const OutOfCoreProblem&) { return seconds; }));
  const std::vector<std::optional<double>>& off = figure.series[0].values;
  const std::vector<std::optional<double>>& on = figure.series[1].values;
  const auto last_off = static_cast<size_t>(
      std::find(figure.x.begin(), figure.x.end(), LargestThatRuns(figure, 0)) - figure.x.begin());
  figure.findings = {
      absl::StrFormat("On is slower at every batch, also where the job fits: %.1f times at %g "
                      "images, %.1f times at %g.",
                      *on[0] / *off[0], figure.x[0], *on[last_off] / *off[last_off],
                      figure.x[last_off]),
      absl::StrFormat("Off needs memory for the whole batch and ends after %g images.",
                      figure.x[last_off]),
      "Capacity-based swapping moves nothing while the job fits, so that it need not be switched "
      "off."};
  return figure;
}

// What throughput tends to as batches grow: near memory holds no share of a batch that counts.
absl::StatusOr<double> Limit(absl::string_view strategy, double batch, BytesPerSecond link) {
  SIPHON_ASSIGN_OR_RETURN(OutOfCoreProblem problem,
                          ProblemOf("resnet50", static_cast<int64_t>(batch), link));
  problem.capacity = Bytes(0);
  SIPHON_ASSIGN_OR_RETURN(const std::optional<double> seconds, Seconds(strategy, problem));
  SIPHON_CHECK(seconds.has_value(), "unified memory pages whatever the capacity");
  return batch / *seconds;
}

struct Range {
  double least = 0;
  double most = 0;
};

// Of `numerator / denominator - 1` in percent where they differ.
Range Gain(const FigureSeries& numerator, const FigureSeries& denominator) {
  std::vector<double> gains;
  for (size_t index = 0; index < numerator.values.size(); ++index) {
    const double ratio = *numerator.values[index] / *denominator.values[index];
    if (ratio != 1) gains.push_back(100 * (ratio - 1));
  }
  SIPHON_CHECK(!gains.empty(), "some batches do not fit in memory");
  return {*std::min_element(gains.begin(), gains.end()),
          *std::max_element(gains.begin(), gains.end())};
}

absl::StatusOr<Figure> Figure7() {
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, FindDeviceSpec(kDevice));
  Figure figure{.number = 7,
                .title = "Throughput under unified memory",
                .setting = absl::StrFormat(
                    "ResNet-50 (ASSUMED), fp32, V100 16 GB, link %.1f GB/s, pages on demand at "
                    "half of it and prefetched at nine tenths (ASSUMED), calculated",
                    LinkGigabytes(device.host_link)),
                .x_label = "batch (images)",
                .y_label = "images/s",
                .x = {32, 64, 96, 128, 160, 176, 192, 224, 256, 320, 384, 512, 640, 768, 1024}};
  SIPHON_RETURN_IF_ERROR(FillSeries(
      figure,
      {{"in_memory", "in memory"},
       {"unified_memory", "unified memory"},
       {"unified_memory_prefetch", "unified memory, prefetch"}},
      [&](double batch) {
        return ProblemOf("resnet50", static_cast<int64_t>(batch), device.host_link);
      },
      [](double batch, double seconds, const OutOfCoreProblem&) { return batch / seconds; }));
  const Range gain = Gain(figure.series[2], figure.series[1]);
  SIPHON_ASSIGN_OR_RETURN(const double fault_limit,
                          Limit("unified_memory", figure.x.back(), device.host_link));
  SIPHON_ASSIGN_OR_RETURN(const double prefetch_limit,
                          Limit("unified_memory_prefetch", figure.x.back(), device.host_link));
  figure.findings = {
      absl::StrFormat(
          "Constant up to %g images, the last batch that fits, then falling. The "
          "paper's fall begins between 32 and 64: its framework keeps more of an image, "
          "or its model does; it names neither.",
          LargestThatRuns(figure, 0)),
      absl::StrFormat("Prefetch gives +%.0f to +%.0f %% where the batch does not fit (the paper: "
                      "about +35 %%).",
                      gain.least, gain.most),
      absl::StrFormat("Both tend to a constant that the link sets: %.0f images/s without and %.0f "
                      "with prefetch; %.0f and %.0f at %g images.",
                      fault_limit, prefetch_limit, *figure.series[1].values.back(),
                      *figure.series[2].values.back(), figure.x.back())};
  return figure;
}

// The first x at which the series is within one percent of its last value.
double Settled(const Figure& figure, size_t series) {
  const std::vector<std::optional<double>>& values = figure.series[series].values;
  for (size_t index = 0; index < values.size(); ++index) {
    if (*values[index] <= 1.01 * *values.back()) return figure.x[index];
  }
  return figure.x.back();
}

absl::StatusOr<Figure> Figure8() {
  constexpr int64_t kBatch = 256;
  Figure figure{
      .number = 8,
      .title = "Time against link throughput",
      .setting = absl::StrCat("VGG16, batch ", kBatch,
                              " (ASSUMED; it does not fit), fp32, V100 16 GB, calculated"),
      .x_label = "link throughput (GB/s each way)",
      .y_label = "time / time with all in memory",
      .x_scale = FigureScale::kLogarithmic,
      .x = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}};
  SIPHON_RETURN_IF_ERROR(FillSeries(
      figure,
      {{"vdnn", "vDNN-like"},
       {"vdnn_plus_plus", "vDNN++-like"},
       {"capacity_based", "capacity-based"}},
      [](double gigabytes) {
        return ProblemOf("vgg16", kBatch, BytesPerSecond(static_cast<int64_t>(gigabytes * 1e9)));
      },
      [](double, double seconds, const OutOfCoreProblem& problem) {
        return seconds / (static_cast<double>(ComputeTime(problem).value) * 1e-9);
      }));
  for (size_t series = 0; series < figure.series.size(); ++series) {
    const std::vector<std::optional<double>>& values = figure.series[series].values;
    figure.findings.push_back(absl::StrFormat(
        "%s: from %.2f at %g GB/s to %.2f, within 1 %% of which it is from %g GB/s on.",
        figure.series[series].name, *values.front(), figure.x.front(), *values.back(),
        Settled(figure, series)));
  }
  figure.findings.push_back(
      "More throughput than that buys nothing; below it, throughput sets the time.");
  return figure;
}

struct FigureRow {
  int number;
  absl::StatusOr<Figure> (*make)();
};
constexpr FigureRow kFigures[] = {{5, Figure5}, {7, Figure7}, {8, Figure8}};

}  // namespace

absl::StatusOr<Figure> PublishedFigure(int number) {
  for (const FigureRow& row : kFigures) {
    if (row.number == number) return row.make();
  }
  return absl::NotFoundError(absl::StrCat(
      "figure ", number, " of the out-of-core paper is not calculated; known: 5, 7, 8"));
}

std::vector<int> PublishedFigureNumbers() {
  std::vector<int> numbers;
  for (const FigureRow& row : kFigures) numbers.push_back(row.number);
  return numbers;
}

}  // namespace siphon
