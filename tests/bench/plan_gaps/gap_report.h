#ifndef SIPHON_TESTS_BENCH_PLAN_GAPS_GAP_REPORT_H_
#define SIPHON_TESTS_BENCH_PLAN_GAPS_GAP_REPORT_H_

#include <string>
#include <vector>

#include "tests/bench/plan_gaps/measure_gap.h"

namespace siphon {

// As text: how often auto lost to another strategy, and where; gaps as a distribution; the ten
// largest with what binds; planning times; what does not fit.
std::string GapReport(const std::vector<GapOutcome>& outcomes);

// The value below which `part` (0 to 1) of them lie: the nearest rank. Requires: not empty.
double Quantile(std::vector<double> values, double part);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_PLAN_GAPS_GAP_REPORT_H_
