#include "planner/performance/out_of_core.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/performance/strategies.h"
#include "planner/status.h"

namespace siphon {

BytesPerSecond SwapRate(BytesPerSecond far, BytesPerSecond near, BytesPerSecond connection) {
  return std::min({far, near, connection});
}

Nanos CopyTime(Bytes bytes, BytesPerSecond rate, Nanos latency) {
  SIPHON_CHECK(rate.value > 0, "a path has a positive rate");
  if (bytes.value == 0) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 scaled = absl::int128(bytes.value) * kNanosPerSecond;
  const absl::int128 nanos = (scaled + rate.value - 1) / rate.value;
  return latency + Nanos(static_cast<int64_t>(nanos));
}

Bytes SavedBytes(const OutOfCoreProblem& problem) {
  Bytes total;
  for (const OutOfCoreLayer& layer : problem.layers) total += layer.saved;
  return total;
}

Nanos ComputeTime(const OutOfCoreProblem& problem) {
  Nanos total;
  for (const OutOfCoreLayer& layer : problem.layers) total += layer.forward + layer.backward;
  return total;
}

OutOfCoreLane LaneOf(OutOfCoreKind kind) {
  if (kind == OutOfCoreKind::kCopyOut) return OutOfCoreLane::kCopyOut;
  if (kind == OutOfCoreKind::kCopyIn) return OutOfCoreLane::kCopyIn;
  return OutOfCoreLane::kCompute;
}

const std::vector<OutOfCoreStrategy>& OutOfCoreStrategies() {
  static const auto* const strategies = new std::vector<OutOfCoreStrategy>{
#define SIPHON_OUT_OF_CORE(name, title, tasks, closed_form) {name, title, tasks, closed_form},
#include "planner/performance/out_of_core_strategies.def"
#undef SIPHON_OUT_OF_CORE
  };
  return *strategies;
}

absl::StatusOr<OutOfCoreStrategy> FindOutOfCoreStrategy(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const OutOfCoreStrategy& strategy : OutOfCoreStrategies()) {
    if (strategy.name == name) return strategy;
    known.push_back(strategy.name);
  }
  return absl::NotFoundError(absl::StrCat("unknown out-of-core strategy '", name,
                                          "'; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace siphon
