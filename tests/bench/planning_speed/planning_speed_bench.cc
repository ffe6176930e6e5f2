// How much processor time `auto` takes for a plan and its lower bound (both have one thread; other
// load on the machine does not count): GPT-25.5B of MPress on a DGX-1 with V100, and the curves of
// time over layers, microbatches and stages. Prints machine, results and medians, and fails when
// the limit is passed. With a path, the curves are written there as SVG.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "launch/output/svg_plot.h"
#include "launch/topology/topology_file.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/bounds/lower_bound.h"
#include "planner/lower_schedule.h"
#include "planner/memory/published_formula.h"
#include "planner/performance/device_spec.h"
#include "planner/performance/host_adam.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/strategies/strategies.h"
#include "tests/bench/machine_name.h"

namespace siphon {
namespace {

constexpr int kRepeats = 3;
constexpr int kAdamMoments = 2;
constexpr double kMostSeconds = 2;
// Of each device, as configs/jobs/gpt_25b_dgx1.yaml has it.
constexpr Bytes kCapacityOfJob{(int64_t{32} << 30) - 1'000'000'000};

template <typename T>
T ValueOf(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::cerr << value.status() << "\n";
    std::exit(1);
  }
  return *std::move(value);
}

struct Size {
  int layers = 125;
  int microbatches = 32;
  int stages = 8;
  // Of each device; none: two thirds of what keeping everything takes on the fullest one.
  std::optional<Bytes> capacity;
};

// Of what the fullest worker holds when everything is kept.
Bytes TwoThirds(const PlanningProblem& problem) {
  const PlannedStep kept = ValueOf(PlanKeep(problem));
  const std::vector<Bytes> peaks = TotalPeaks(kept.simulated);
  return Bytes(std::max_element(peaks.begin(), peaks.end())->value / 3 * 2);
}

// MPress's GPT of so many blocks (planner/memory/mpress_tables.h) on one pipeline.
PlanningProblem ProblemOf(const Size& size, const std::string& preset) {
  PlanningProblem problem;
  problem.topology = ValueOf(FindTopologyPreset(preset));
  const ModelSpec model = ValueOf(BuildModelSpec({.kind = "gpt",
                                                  .layers = size.layers,
                                                  .hidden = 4096,
                                                  .heads = 32,
                                                  .vocabulary = 50257,
                                                  .sequence_length = 1024,
                                                  .tie_embeddings = false}));
  problem.profile = ValueOf(
      ProfileFromFirstPrinciples(model, ValueOf(FindDeviceSpec(problem.topology.device_kind)),
                                 /*microbatch=*/2, Precision::kFloat16));
  problem.host_step =
      HostAdamTime(problem.profile, BytesOfParameter(Precision::kFloat16, kAdamMoments));
  problem.partition = ValueOf(PartitionModel(model, size.stages, "balanced"));
  Schedule schedule =
      ValueOf(BuildSchedule("dapple", {.workers = size.stages, .microbatches = size.microbatches}));
  problem.schedule = AppendOptimizerStep(ValueOf(InsertCommunication(std::move(schedule))), {});
  problem.capacity.assign(size.stages, size.capacity ? *size.capacity : TwoThirds(problem));
  return problem;
}

// Seconds, median.
double Measure(const std::string& what, const PlanningProblem& problem) {
  std::vector<double> times;
  std::string result;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const std::clock_t begin = std::clock();
    const absl::StatusOr<PlannedStep> plan = PlanAuto(problem);
    const LowerBound bound = ValueOf(LowerBoundOf(problem));
    times.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    result =
        plan.ok()
            ? absl::StrFormat(
                  "step %s, bound %s, gap %.1f %%", FormatNanos(plan->simulated.step_time),
                  FormatNanos(bound.step_time),
                  100.0 *
                      static_cast<double>(plan->simulated.step_time.value - bound.step_time.value) /
                      static_cast<double>(bound.step_time.value))
            : "does not fit";
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::cout << absl::StreamFormat("%-52s %7.3f s  %s\n", what, median, result) << std::flush;
  return median;
}

// One figure of the size grows, the others stay. Returns the doublings as a curve.
PlotSeries Grow(const std::string& name, const std::vector<int>& factors, const std::string& preset,
                const std::function<Size(int)>& size_of) {
  PlotSeries series{.name = name};
  for (const int factor : factors) {
    const Size size = size_of(factor);
    series.y.emplace_back(Measure(absl::StrFormat("%s: %d layers, %d microbatches, %d stages", name,
                                                  size.layers, size.microbatches, size.stages),
                                  ProblemOf(size, preset)));
  }
  return series;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1 || (!arguments.empty() && absl::StartsWith(arguments[0], "-"))) {
    const bool asked = arguments[0] == "--help" || arguments[0] == "-h";
    (asked ? std::cout : std::cerr) << "usage: planning_speed_bench [PICTURE.svg]\n";
    return asked ? 0 : 2;
  }
  std::cout << MachineName() << ", processor time of plan and bound, median of " << kRepeats
            << "\n";
  const double needed = Measure("GPT-25.5B: 125 layers, 32 microbatches, 8 stages",
                                ProblemOf({.capacity = kCapacityOfJob}, "dgx1_v100"));
  const std::vector<int> factors = {1, 2, 4, 8};
  LinePlot plot{.title = "planning time",
                .subtitle = "auto and its lower bound, one core",
                .x_label = "times as many as the smallest",
                .y_label = "seconds",
                .x_scale = PlotScale::kLogarithmic,
                .x = {1, 2, 4, 8}};
  plot.series.push_back(Grow("layers", factors, "dgx1_v100",
                             [&](int factor) { return Size{.layers = 25 * factor}; }));
  plot.series.push_back(Grow("microbatches", factors, "dgx1_v100", [&](int factor) {
    return Size{.layers = 25, .microbatches = 16 * factor};
  }));
  plot.series.push_back(Grow("stages", factors, "dgx2_v100", [&](int factor) {
    return Size{.layers = 15 * factor, .stages = 2 * factor};
  }));
  if (!arguments.empty()) std::ofstream(arguments[0]) << SvgLinePlot(plot);
  const bool kept = needed < kMostSeconds;
  std::cout << absl::StreamFormat("GPT-25.5B within %.0f s: %s\n", kMostSeconds,
                                  kept ? "kept" : "NOT KEPT");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) { return siphon::Main({argv + 1, argv + argc}); }
