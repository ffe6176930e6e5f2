#include "tests/bench/plan_gaps/measure_gap.h"

#include <ctime>
#include <utility>

#include "planner/bounds/counting/combinatorial_bound.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

double Seconds(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

std::vector<std::string> GapOutcome::Winners() const {
  std::vector<std::string> winners;
  for (const StrategyOutcome& other : others) {
    if (!other.step_time.has_value()) continue;
    const bool wins = !planned.step_time.has_value() || *other.step_time < *planned.step_time;
    if (wins) winners.push_back(other.strategy);
  }
  return winners;
}

std::optional<double> GapOutcome::Gap() const {
  if (!planned.step_time.has_value()) return std::nullopt;
  const auto least = static_cast<double>(bound.step_time.value);
  return (static_cast<double>(planned.step_time->value) - least) / least;
}

absl::StatusOr<GapOutcome> MeasureGap(const GapInstance& instance) {
  GapOutcome outcome{.name = instance.name};
  std::clock_t begin = std::clock();
  SIPHON_ASSIGN_OR_RETURN(outcome.bound, LowerBoundOf(instance.problem));
  outcome.bound_seconds = Seconds(begin);
  if (!outcome.bound.parts.empty()) {
    outcome.longest_path = outcome.bound.parts.front().time.value_or(Nanos(0));
  }
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    begin = std::clock();
    const absl::StatusOr<PlannedStep> planned = strategy.plan(instance.problem);
    if (!planned.ok() && !absl::IsResourceExhausted(planned.status()) && strategy.name == "auto") {
      return planned.status();
    }
    StrategyOutcome one{.strategy = std::string(strategy.name), .seconds = Seconds(begin)};
    if (planned.ok()) one.step_time = planned->simulated.step_time;
    if (strategy.name == "auto") {
      outcome.planned = std::move(one);
      if (planned.ok()) outcome.map = planned->map;
    } else {
      outcome.others.push_back(std::move(one));
    }
  }
  return outcome;
}

}  // namespace siphon
