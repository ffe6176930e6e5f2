#include "planner/performance/compare_out_of_core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/performance/out_of_core_problem.h"
#include "planner/status.h"

namespace siphon {
namespace {

FarMemoryPath Twice(const FarMemoryPath& path) {
  return {BytesPerSecond(path.out.value * 2), BytesPerSecond(path.in.value * 2), path.latency};
}

// Nothing where it does not fit.
std::optional<OutOfCoreStep> CapacityBasedStep(const ModelProfile& profile,
                                               const FarMemoryPath& path, Bytes near_memory) {
  const auto strategy = FindOutOfCoreStrategy("capacity_based");
  SIPHON_CHECK(strategy.ok(), "the table has capacity-based swapping");
  const auto problem = OutOfCoreProblemOf(profile, path, near_memory);
  if (!problem.ok()) return std::nullopt;
  auto step = SimulateOutOfCore(*strategy, *problem);
  if (!step.ok()) return std::nullopt;
  return *std::move(step);
}

std::optional<Nanos> TimeOf(const std::optional<OutOfCoreStep>& step) {
  if (!step) return std::nullopt;
  return step->step_time;
}

double Ratio(Nanos a, Nanos b) {
  return static_cast<double>(a.value) / std::max(1.0, static_cast<double>(b.value));
}

const OutOfCoreResult* Find(const OutOfCoreComparison& comparison, absl::string_view name) {
  for (const OutOfCoreResult& result : comparison.results) {
    if (result.name == name) return &result;
  }
  return nullptr;
}

void ConcludeThatItFits(OutOfCoreComparison& comparison) {
  comparison.conclusions.push_back("The batch fits in near memory: swap nothing.");
  const OutOfCoreResult* vdnn = Find(comparison, "vdnn");
  if (vdnn == nullptr || !vdnn->step) return;
  comparison.conclusions.push_back(
      absl::StrFormat("vDNN-like swapping, which moves every layer all the same, would take %.2f "
                      "times as long.",
                      Ratio(vdnn->step->step_time, comparison.compute)));
}

std::string WhatPaysMore(const OutOfCoreComparison& comparison, Nanos now) {
  const Nanos link = comparison.twice_the_link.value_or(now);
  const Nanos memory = comparison.twice_the_memory.value_or(now);
  const std::string figures = absl::StrFormat(
      "Twice the link brings capacity-based swapping from %s to %s, twice the near memory to %s",
      FormatNanos(now), FormatNanos(link), FormatNanos(memory));
  if (link <= memory) {
    return figures + ": as the paper concludes, buy link throughput rather than near capacity.";
  }
  return figures +
         ": here near capacity buys more than link throughput, against the paper's conclusion.";
}

void Conclude(OutOfCoreComparison& comparison) {
  if (comparison.saved <= comparison.capacity) {
    ConcludeThatItFits(comparison);
    return;
  }
  comparison.conclusions.push_back(absl::StrCat("The batch saves ",
                                                FormatBytes(comparison.saved - comparison.capacity),
                                                " more than near memory has room for."));
  const OutOfCoreResult* best = Find(comparison, "capacity_based");
  if (best == nullptr || !best->step) return;
  const Nanos now = best->step->step_time;
  if (best->step->stall.value == 0) {
    comparison.conclusions.push_back(
        "Capacity-based swapping hides all of it: nothing faster can be bought on this path.");
    return;
  }
  comparison.conclusions.push_back(WhatPaysMore(comparison, now));
}

}  // namespace

absl::StatusOr<OutOfCoreComparison> CompareOutOfCore(const ModelProfile& profile,
                                                     const FarMemoryPath& path, Bytes near_memory) {
  SIPHON_ASSIGN_OR_RETURN(const OutOfCoreProblem problem,
                          OutOfCoreProblemOf(profile, path, near_memory));
  OutOfCoreComparison comparison;
  comparison.resident = ResidentBytes(profile);
  comparison.saved = SavedBytes(problem);
  comparison.capacity = problem.capacity;
  comparison.compute = ComputeTime(problem);
  for (const OutOfCoreStrategy& strategy : OutOfCoreStrategies()) {
    OutOfCoreResult result{std::string(strategy.name), std::string(strategy.title), {}, {}};
    auto step = SimulateOutOfCore(strategy, problem);
    if (step.ok()) {
      result.step = *std::move(step);
    } else if (absl::IsResourceExhausted(step.status())) {
      result.why_not = std::string(step.status().message());
    } else {
      return Annotate(step.status(), strategy.name);
    }
    comparison.results.push_back(std::move(result));
  }
  comparison.twice_the_link = TimeOf(CapacityBasedStep(profile, Twice(path), near_memory));
  comparison.twice_the_memory = TimeOf(CapacityBasedStep(profile, path, near_memory * 2));
  Conclude(comparison);
  return comparison;
}

}  // namespace siphon
