#ifndef SIPHON_TESTS_BENCH_PLAN_GAPS_MEASURE_TINY_H_
#define SIPHON_TESTS_BENCH_PLAN_GAPS_MEASURE_TINY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/units.h"
#include "tests/bench/plan_gaps/gap_grid.h"

namespace siphon {

// Drafts of an instance that are simulated at most: half a second.
inline constexpr int64_t kMostTinyDrafts = 13'000;

// Step times of an instance all of whose drafts were simulated.
struct TinyOutcome {
  int64_t drafts = 0;
  Nanos best;
  Nanos planned;  // by auto, which may also take what is no draft: weights layer by layer
  Nanos bound;
};

// Errors: ResourceExhausted where there are too many drafts, or none fits.
absl::StatusOr<TinyOutcome> MeasureTiny(const GapInstance& instance,
                                        int64_t most_drafts = kMostTinyDrafts);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_PLAN_GAPS_MEASURE_TINY_H_
