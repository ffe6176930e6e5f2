#include "launch/commands/plan_compare.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/plan_report.h"
#include "launch/commands/plan_tables.h"
#include "launch/output/figure_text.h"
#include "launch/process/run_together.h"
#include "planner/baselines/memory_baseline.h"
#include "planner/placement_bytes.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;

ComparedPlan AsCompared(absl::string_view strategy, const StudiedPlan& studied) {
  ComparedPlan compared{.name = std::string(strategy)};
  if (!studied.step.has_value()) {
    compared.remark = absl::StrCat("does not fit: ", studied.misfit);
    return compared;
  }
  compared.step_time = studied.step->step_time;
  compared.tokens_per_second = TokensPerSecond(studied).value_or(0);
  // Of other stages and another schedule the bound is another one.
  if (studied.settings.empty()) compared.gap = GapOf(studied);
  const PlacementBytes bytes = Sum(BytesByPlacement(studied.plan));
  for (const Placement placement :
       {Placement::kPeerSwap, Placement::kHostSwap, Placement::kNvmeSwap}) {
    compared.parked += bytes[static_cast<size_t>(placement)];
  }
  compared.recomputed = bytes[static_cast<size_t>(Placement::kRecompute)];
  if (!studied.settings.empty()) compared.remark = "with stages and schedule of its own";
  return compared;
}

ComparedPlan ByStrategy(PlanRequest request, absl::string_view strategy,
                        const StudiedPlan& planned) {
  const bool is_known = planned.strategy == strategy && planned.job.memory.plan.empty();
  if (is_known) return AsCompared(strategy, planned);
  request.strategy = std::string(strategy);
  const absl::StatusOr<StudiedPlan> studied = StudyPlan(request);
  if (studied.ok()) return AsCompared(strategy, *studied);
  return {.name = std::string(strategy), .remark = std::string(studied.status().message())};
}

// Every device has as many microbatches as fill the job's batch, or a little more.
ComparedPlan ByBaseline(const StudiedPlan& planned, const MemoryBaseline& baseline) {
  const PlanningProblem& problem = planned.problem;
  const int devices = DeviceCount(problem.topology);
  const int batch = problem.schedule.microbatches * problem.schedule.replicas;
  const int each = (batch + devices - 1) / devices;
  ComparedPlan compared{.name = std::string(baseline.name)};
  const absl::StatusOr<BaselineStep> step =
      baseline.step({.profile = problem.profile,
                     .topology = problem.topology,
                     .microbatches = each,
                     .capacity = *absl::c_min_element(problem.capacity),
                     .host_step = problem.host_step});
  if (!step.ok()) {
    const bool full = absl::IsResourceExhausted(step.status());
    compared.remark = absl::StrCat(full ? "does not fit: " : "", step.status().message());
    return compared;
  }
  const double batches = static_cast<double>(each * devices) / batch;
  compared.step_time =
      Nanos(static_cast<int64_t>(static_cast<double>(step->step_time.value) / batches));
  compared.tokens_per_second = static_cast<double>(planned.tokens) * kNanosPerSecond /
                               static_cast<double>(std::max<int64_t>(1, compared.step_time->value));
  compared.parked = step->host + step->drives;
  compared.remark = std::string(baseline.help);
  if (devices != WorkerCount(problem.schedule) * problem.schedule.replicas) {
    compared.remark = absl::StrCat("on all ", devices, " devices: ", compared.remark);
  }
  return compared;
}

// Fastest first, then those that do not fit.
bool Before(const ComparedPlan& a, const ComparedPlan& b) {
  if (a.step_time.has_value() != b.step_time.has_value()) return a.step_time.has_value();
  return a.step_time.has_value() && *a.step_time < *b.step_time;
}

std::string BytesText(Bytes bytes) { return bytes == Bytes(0) ? "-" : FormatBytes(bytes); }

}  // namespace

std::vector<ComparedPlan> ComparePlans(PlanRequest request, const StudiedPlan& planned,
                                       const std::function<void(absl::string_view)>& say) {
  request.news = nullptr;  // of several searches at once
  std::vector<absl::string_view> names;
  for (const MemoryStrategy& strategy : MemoryStrategies()) names.push_back(strategy.name);
  names.push_back(kHarmonyStrategy);
  std::vector<ComparedPlan> plans(names.size());
  RunTogether(static_cast<int>(names.size()), [&](int index) {
    say(absl::StrCat("planning with ", names[index]));
    plans[index] = ByStrategy(request, names[index], planned);
  });
  const bool on_server = !planned.job.topology.name.empty() && !planned.problem.capacity.empty() &&
                         DeviceCount(planned.problem.topology) > 0;
  if (on_server) {
    for (const MemoryBaseline& baseline : MemoryBaselines()) {
      plans.push_back(ByBaseline(planned, baseline));
    }
  }
  absl::c_stable_sort(plans, Before);
  return plans;
}

PageTable ComparisonTable(const std::vector<ComparedPlan>& plans) {
  PageTable table{
      .title = "strategies",
      .header = {"strategy", "step time", "tokens/s", "gap", "recomputed", "parked", ""}};
  for (const ComparedPlan& plan : plans) {
    const bool fits = plan.step_time.has_value();
    table.rows.push_back({plan.name, fits ? FormatNanos(*plan.step_time) : "-",
                          fits ? FigureText(plan.tokens_per_second) : "-",
                          plan.gap.has_value() ? FormatPercent(*plan.gap) : "-",
                          BytesText(plan.recomputed), BytesText(plan.parked), plan.remark});
  }
  return table;
}

bool IsBaseline(absl::string_view strategy) {
  return absl::c_any_of(MemoryBaselines(),
                        [&](const MemoryBaseline& baseline) { return baseline.name == strategy; });
}

std::string BaselineNames() {
  return absl::StrJoin(MemoryBaselines(), ", ",
                       [](std::string* text, const MemoryBaseline& baseline) {
                         absl::StrAppend(text, baseline.name);
                       });
}

}  // namespace siphon
