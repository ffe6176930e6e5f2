#ifndef SIPHON_TESTS_BENCH_PLAN_GAPS_MEASURE_GAP_H_
#define SIPHON_TESTS_BENCH_PLAN_GAPS_MEASURE_GAP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/bounds/lower_bound.h"
#include "planner/drafts/planning_problem.h"
#include "planner/units.h"
#include "tests/bench/plan_gaps/gap_grid.h"

namespace siphon {

struct StrategyOutcome {
  std::string strategy;
  std::optional<Nanos> step_time;  // none: does not fit
  double seconds = 0;              // of processor time, to plan
};

// What all strategies make of an instance.
struct GapOutcome {
  std::string name;
  std::vector<StrategyOutcome> others;
  StrategyOutcome planned;  // by auto
  Nanos longest_path;       // of the schedule
  LowerBound bound;
  double bound_seconds = 0;
  std::optional<MapProof> map;  // of auto's plan; none: it has no map, or none was searched

  // Strategies that fit with a shorter step than auto has, or fit where it does not.
  std::vector<std::string> Winners() const;
  // (step time - bound) / bound; none where auto does not fit.
  std::optional<double> Gap() const;
};

// Errors: of the bound, or of a strategy that refuses the problem itself.
absl::StatusOr<GapOutcome> MeasureGap(const GapInstance& instance);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_PLAN_GAPS_MEASURE_GAP_H_
