#ifndef SIPHON_TESTS_PLANNER_PERFORMANCE_OUT_OF_CORE_TESTING_H_
#define SIPHON_TESTS_PLANNER_PERFORMANCE_OUT_OF_CORE_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/performance/out_of_core.h"
#include "planner/performance/simulate_out_of_core.h"

namespace siphon {

// Equal layers of `saved` bytes over a path on which a byte takes a nanosecond and no copy has a
// latency, so that a copy takes `saved` nanoseconds each way.
inline OutOfCoreProblem NanosecondProblem(int layers, int64_t forward, int64_t backward,
                                          int64_t saved, int64_t capacity) {
  OutOfCoreProblem problem;
  for (int layer = 1; layer <= layers; ++layer) {
    problem.layers.push_back({absl::StrCat(layer), Nanos(forward), Nanos(backward), Bytes(saved)});
  }
  problem.path = {BytesPerSecond(1'000'000'000), BytesPerSecond(1'000'000'000), Nanos(0)};
  problem.capacity = Bytes(capacity);
  return problem;
}

inline OutOfCoreStep Simulated(absl::string_view strategy, const OutOfCoreProblem& problem) {
  const auto found = FindOutOfCoreStrategy(strategy);
  EXPECT_TRUE(found.ok()) << found.status();
  if (!found.ok()) return {};
  auto step = SimulateOutOfCore(*found, problem);
  EXPECT_TRUE(step.ok()) << strategy << ": " << step.status();
  return step.ok() ? *std::move(step) : OutOfCoreStep{};
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_PERFORMANCE_OUT_OF_CORE_TESTING_H_
