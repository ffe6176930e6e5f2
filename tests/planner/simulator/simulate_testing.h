#ifndef SIPHON_TESTS_PLANNER_SIMULATOR_SIMULATE_TESTING_H_
#define SIPHON_TESTS_PLANNER_SIMULATOR_SIMULATE_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/simulator/simulate.h"
#include "planner/units.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {

inline constexpr int64_t kGigabyte = 1'000'000'000;  // at 1 GB/s one byte takes one nanosecond

inline SimulatedStep Simulated(const SimulationInput& input) {
  absl::StatusOr<SimulatedStep> step = Simulate(input);
  EXPECT_TRUE(step.ok()) << step.status();
  return step.ok() ? *std::move(step) : SimulatedStep{};
}

inline Nanos WaitForSwaps(const SimulatedStep& step, int worker) {
  return step.exposed_waits[worker][static_cast<size_t>(WaitCause::kSwap)];
}

// Why it is refused.
inline std::string Refusal(const SimulationInput& input, absl::StatusCode code) {
  const absl::StatusOr<SimulatedStep> step = Simulate(input);
  if (step.ok()) return "it ran";
  EXPECT_EQ(step.status().code(), code) << step.status();
  return std::string(step.status().message());
}

// F 10 ns, I and W 10 ns each, STEP 4 ns.
inline StageCost TenNanos() {
  return {.forward = Nanos(10),
          .input_backward = Nanos(10),
          .weight_backward = Nanos(10),
          .step = Nanos(4)};
}

// A stage as one layer.
inline LayerCost LayerOf(const StageCost& cost) {
  return {.forward = cost.forward,
          .input_backward = cost.input_backward,
          .weight_backward = cost.weight_backward,
          .stash = cost.stash,
          .kept_for_weights = cost.kept_for_weights,
          .whole_backward = cost.whole_backward};
}

// "0SWAP_OUT0.0 [5,15) device 0, copies to host\n", lane by lane.
inline std::string CopiesText(const SimulatedStep& step) {
  std::string text;
  for (const LaneTimeline& lane : step.lanes) {
    for (const Interval& copy : lane.intervals) {
      absl::StrAppend(&text, ToString(copy.action), " [", copy.begin.value, ",", copy.end.value,
                      ") ", lane.name, "\n");
    }
  }
  return text;
}

// One line a point of a worker's curve: "10: activations 5, boundary 2\n".
inline std::string CurveText(const MemoryCurve& curve) {
  std::string text;
  for (const MemoryPoint& point : curve) {
    absl::StrAppend(&text, point.time.value, ":");
    absl::string_view separator = " ";
    for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
      if (point.bytes.bytes[kind] == Bytes(0)) continue;
      absl::StrAppend(&text, separator, MemoryKindName(static_cast<MemoryKind>(kind)), " ",
                      point.bytes.bytes[kind].value);
      separator = ", ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_SIMULATOR_SIMULATE_TESTING_H_
