#include "planner/weight_offload/published_weight_offload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/status.h"
#include "planner/weight_offload/layer_to_layer.h"
#include "planner/weight_offload/plan_weight_offload.h"
#include "planner/weight_offload/weight_offload_bound.h"
#include "planner/weight_offload/weight_offload_plan.h"

namespace siphon {
namespace {

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr Bytes kDeviceMemory(16'000 * kMegabyte);  // V100 (section 7)
constexpr int64_t kPublishedBatch = 16;             // of the two sizes below
constexpr Bytes kActivation(20 * kMegabyte);        // kept by a layer (section 7)
constexpr double kMebibytesPerGigabyte = 1000;      // of a link's rate: fitted
constexpr int64_t kBackwardShare = 4;               // forward : whole = 1 : 4, ASSUMED
constexpr absl::string_view kGpt = "GPT-2";

struct NetworkSizes {
  Bytes block;
  Bytes embeddings;
  Bytes computed_anew;  // by a layer's backward at batch 16: within the paper's 1 to 2 GB
};

NetworkSizes SizesOf(absl::string_view network) {
  if (network == kGpt) {
    constexpr int64_t kHidden = 3072;        // section 7
    constexpr int64_t kRows = 50257 + 1024;  // vocabulary and positions of GPT-2
    constexpr int64_t kWeightBytes = 4;      // fp32
    return {Bytes((12 * kHidden + 13) * kHidden * kWeightBytes),
            Bytes(kRows * kHidden * kWeightBytes), Bytes(2000 * kMegabyte)};
  }
  return {Bytes(160 * kMebibyte), Bytes(637 * kMebibyte), Bytes(1000 * kMegabyte)};
}

std::string RowName(const WeightOffloadRow& row) {
  return absl::StrCat(row.network, " depth ", row.depth, " batch ", row.batch);
}

absl::StatusOr<Nanos> SimulatedTime(const WeightOffloadProblem& problem,
                                    const WeightOffloadPlan& plan, absl::string_view name) {
  const auto step = SimulateWeightOffload(problem, plan);
  if (!step.ok()) return Annotate(step.status(), name);
  return step->step_time;
}

double Ratio(Nanos a, Nanos b) {
  return static_cast<double>(a.value) / static_cast<double>(b.value);
}

// Beyond, the relaxation of the paper's program takes minutes.
constexpr size_t kMostProgramLayers = 100;

// Errors: none for lack of a solver.
absl::StatusOr<std::optional<OffloadProgramBound>> ProgramBound(const WeightOffloadProblem& problem,
                                                                Nanos known) {
  const bool idles = known > ComputeTime(problem);
  if (idles && problem.layers.size() > kMostProgramLayers) return std::nullopt;
  const auto bound = SolveOffloadProgram(problem, {.most_nodes = 1, .known = known});
  if (absl::IsUnavailable(bound.status())) return std::nullopt;
  SIPHON_RETURN_IF_ERROR(bound.status());
  return *bound;
}

struct SeriesOfTimes {
  const char* name;
  Nanos WeightOffloadTimes::*time;
};
constexpr SeriesOfTimes kSeries[] = {{"lower bound", &WeightOffloadTimes::bound},
                                     {"trimmed greedy (ours)", &WeightOffloadTimes::trimmed},
                                     {"greedy", &WeightOffloadTimes::greedy},
                                     {"greedy*, no discount", &WeightOffloadTimes::greedy_star},
                                     {"L2L", &WeightOffloadTimes::layer_to_layer}};

// Of a step, with the computation.
constexpr double kAlmostNoIdle = 1.01;

// The smallest rate from which on the algorithm idles for less than one percent of the step.
std::string AlmostNoIdle(const Figure& figure, const std::vector<WeightOffloadTimes>& times,
                         const SeriesOfTimes& series) {
  std::optional<double> from;
  for (size_t point = times.size(); point > 0; --point) {
    if (Ratio(times[point - 1].*series.time, times[point - 1].compute) > kAlmostNoIdle) break;
    from = figure.x[point - 1];
  }
  if (!from) return absl::StrCat(series.name, ": idle at every rate.");
  return absl::StrFormat("%s: less than 1 %% idle from %g GB/s on.", series.name, *from);
}

std::string WorthOfTheDiscount(const Figure& figure, const std::vector<WeightOffloadTimes>& times) {
  double most = 0;
  double least = 0;
  double most_at = 0;
  double least_at = 0;
  for (size_t point = 0; point < times.size(); ++point) {
    const Nanos with = times[point].greedy - times[point].compute;
    if (with.value <= 0) continue;
    const double ratio = Ratio(times[point].greedy_star - times[point].compute, with);
    if (ratio > most) most = ratio, most_at = figure.x[point];
    if (least == 0 || ratio < least) least = ratio, least_at = figure.x[point];
  }
  if (most == 0) return "Neither with nor without the discount is there idle time.";
  return absl::StrFormat(
      "Idle time of greedy* is at most %.2f times that of greedy (at %g GB/s) "
      "and at least %.2f times (at %g GB/s); the paper: up to 5 times, never "
      "less.",
      most, most_at, least, least_at);
}

// The paper's curve "ILP".
void AddProgram(const std::vector<WeightOffloadTimes>& times, Figure& figure) {
  FigureSeries series{"integer program, section 6", {}};
  std::map<OffloadSearch, int> ended;
  int solved = 0;
  size_t idle_end = 0;  // points from this one on have almost no idle
  for (size_t point = 0; point < times.size(); ++point) {
    const std::optional<OffloadProgramBound>& program = times[point].program;
    if (!program) {
      series.values.push_back(std::nullopt);
      idle_end = point + 1;
      continue;
    }
    ++solved;
    ++ended[program->search];
    const double ratio = Ratio(program->step_time, times[point].compute);
    series.values.push_back(ratio);
    if (ratio > kAlmostNoIdle) idle_end = point + 1;
  }
  figure.series.push_back(std::move(series));
  figure.findings.push_back(absl::StrFormat(
      "The integer program of section 6: its minimum at %d of %d rates, that of its relaxation at "
      "%d, a bound of it at %d, not solved at %d (no solver, or more than %d layers).%s",
      ended[OffloadSearch::kWhole], static_cast<int>(times.size()),
      ended[OffloadSearch::kRelaxation], ended[OffloadSearch::kStopped],
      static_cast<int>(times.size()) - solved, static_cast<int>(kMostProgramLayers),
      idle_end < times.size()
          ? absl::StrFormat(" Less than 1 %% idle from %g GB/s on.", figure.x[idle_end])
          : ""));
}

}  // namespace

const std::vector<WeightOffloadRow>& WeightOffloadTable1() {
  static const std::vector<WeightOffloadRow> kRows = {
      {"GPT-2", 74, 64, 47421, 47493, 52707, 47493}, {"GPT-2", 56, 64, 35553, 35625, 39542, 35625},
      {"GPT-2", 38, 64, 23694, 23838, 26387, 23838}, {"GPT-2", 74, 32, 23697, 23769, 28983, 23769},
      {"GPT-2", 56, 32, 17762, 17834, 21751, 17834}, {"GPT-2", 38, 32, 11840, 11948, 14533, 11948},
      {"GPT-2", 74, 16, 11612, 11684, 16898, 11715}, {"GPT-2", 56, 16, 8697, 8769, 12686, 8800},
      {"GPT-2", 38, 16, 5794, 5902, 8487, 5934},     {"Bert", 144, 64, 34486, 34499, 38379, 34499},
      {"Bert", 96, 64, 22965, 22978, 25577, 22978},  {"Bert", 144, 32, 17443, 17483, 21336, 17483},
      {"Bert", 96, 32, 11617, 11657, 14230, 11657},  {"Bert", 144, 16, 9090, 9183, 12983, 9215},
      {"Bert", 96, 16, 6058, 6085, 8670, 6085}};
  return kRows;
}

absl::StatusOr<WeightOffloadRow> FindWeightOffloadRow(absl::string_view network, int depth,
                                                      int batch) {
  std::string known;
  for (const WeightOffloadRow& row : WeightOffloadTable1()) {
    if (row.network == network && row.depth == depth && row.batch == batch) return row;
    absl::StrAppend(&known, known.empty() ? "" : ", ", RowName(row));
  }
  return absl::NotFoundError(absl::StrCat("Table 1 has no row ", network, " depth ", depth,
                                          " batch ", batch, "; it has ", known));
}

WeightOffloadProblem PublishedWeightOffload(const WeightOffloadRow& row,
                                            double gigabytes_per_second) {
  const NetworkSizes sizes = SizesOf(row.network);
  const int blocks = row.depth - 2;
  const Nanos block_time(row.compute_ms * kNanosPerMilli / blocks);
  const Nanos forward(block_time.value / kBackwardShare);
  const Bytes activation(kActivation.value * row.batch / kPublishedBatch);
  const Nanos none(1);
  WeightOffloadProblem problem;
  problem.layers.push_back({"embeddings", none, none, sizes.embeddings, activation});
  for (int block = 1; block <= blocks; ++block) {
    problem.layers.push_back(
        {absl::StrCat("block ", block), forward, block_time - forward, sizes.block, activation});
  }
  problem.layers.push_back({"loss", none, none, Bytes(0), Bytes(0)});
  problem.out = problem.in = BytesPerSecond(
      std::llround(gigabytes_per_second * kMebibytesPerGigabyte * static_cast<double>(kMebibyte)));
  problem.capacity = kDeviceMemory - Bytes(sizes.computed_anew.value * row.batch / kPublishedBatch);
  return problem;
}

std::vector<std::string> WeightOffloadAssumptions() {
  return {
      "Published: hidden 3072 and fp32 for GPT-2, 20 MB of activations a layer at batch 16, a V100 "
      "with 16 GB less what a layer computes anew.",
      "Fitted to the idle time of L2L, which depends on sizes alone: 1 GB/s is 1000 MiB/s; depth - "
      "2 blocks, embeddings, and an end without weights; Bert's blocks of 160 MiB and embeddings "
      "of "
      "637 MiB.",
      "ASSUMED: blocks share the compute time equally and the ends take none; a backward takes "
      "three times its forward; 2 GB (GPT-2) and 1 GB (Bert) computed anew at batch 16, more in "
      "proportion.",
  };
}

absl::StatusOr<WeightOffloadTimes> CompareWeightOffload(const WeightOffloadProblem& problem) {
  WeightOffloadTimes times;
  SIPHON_ASSIGN_OR_RETURN(const auto greedy, PlanWeightOffload(problem, Discount::kUse));
  SIPHON_ASSIGN_OR_RETURN(const auto star, PlanWeightOffload(problem, Discount::kIgnore));
  SIPHON_ASSIGN_OR_RETURN(const auto trimmed, PlanTrimmedWeightOffload(problem));
  times.compute = ComputeTime(problem);
  times.bound = WeightOffloadBound(problem);
  SIPHON_ASSIGN_OR_RETURN(times.greedy, SimulatedTime(problem, greedy.scheduled.plan, "greedy"));
  SIPHON_ASSIGN_OR_RETURN(times.greedy_star,
                          SimulatedTime(problem, star.scheduled.plan, "greedy*"));
  SIPHON_ASSIGN_OR_RETURN(times.trimmed,
                          SimulatedTime(problem, trimmed.scheduled.plan, "trimmed greedy"));
  SIPHON_ASSIGN_OR_RETURN(times.layer_to_layer,
                          SimulatedTime(problem, LayerToLayerPlan(problem), "L2L"));
  SIPHON_ASSIGN_OR_RETURN(times.program, ProgramBound(problem, times.trimmed));
  if (times.program) times.bound = std::max(times.bound, times.program->step_time);
  return times;
}

absl::StatusOr<Figure> WeightOffloadFigure4(const WeightOffloadRow& row) {
  Figure figure{.number = 4,
                .title = "Weight offloading against link throughput",
                .setting = absl::StrCat(RowName(row), ", V100 16 GB, calculated"),
                .x_label = "link throughput (GB/s each way)",
                .y_label = "step time / compute time",
                .x_scale = FigureScale::kLogarithmic,
                .x = {0.5, 1, 2, 4, 8, 12}};
  std::vector<WeightOffloadTimes> times;
  for (const double rate : figure.x) {
    SIPHON_ASSIGN_OR_RETURN(const WeightOffloadTimes at_rate,
                            CompareWeightOffload(PublishedWeightOffload(row, rate)));
    times.push_back(at_rate);
  }
  for (const SeriesOfTimes& series : kSeries) {
    figure.series.push_back({series.name, {}});
    for (const WeightOffloadTimes& at_rate : times) {
      figure.series.back().values.push_back(Ratio(at_rate.*series.time, at_rate.compute));
    }
    figure.findings.push_back(AlmostNoIdle(figure, times, series));
  }
  AddProgram(times, figure);
  figure.findings.push_back(WorthOfTheDiscount(figure, times));
  for (const std::string& assumption : WeightOffloadAssumptions()) {
    figure.findings.push_back(assumption);
  }
  return figure;
}

}  // namespace siphon
