#ifndef SIPHON_PLANNER_SIMULATOR_SIMULATED_STEP_H_
#define SIPHON_PLANNER_SIMULATOR_SIMULATED_STEP_H_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/ids.h"
#include "planner/memory/memory_kind.h"
#include "planner/timeline.h"
#include "planner/units.h"

namespace siphon {

// Why a worker's compute lane stood still between two of its actions.
enum class WaitCause {
  kPredecessor,  // the tensor was not computed yet
  kTransfer,     // computed, but still on its way between two workers
  kSwap,         // on its way out or in
  kStepEnd,      // waiting for the slowest worker before the optimizer step
};
inline constexpr size_t kWaitCauses = static_cast<size_t>(WaitCause::kStepEnd) + 1;
absl::string_view WaitCauseName(WaitCause cause);

// A lane that is not a worker's compute lane: a copy engine, a link, a host uplink.
struct LaneTimeline {
  std::string name;  // "device 0 to device 1", "host uplink of switch 2"
  WorkerTimeline intervals;
  Bytes bytes;  // moved in the step
  Nanos busy;   // time with at least one copy under way
};

// Bytes that a worker holds from `time` on, until the next point.
struct MemoryPoint {
  Nanos time;
  MemoryByKind bytes;
};
using MemoryCurve = std::vector<MemoryPoint>;

// A step as the simulator sees it. The same integers on every machine.
struct SimulatedStep {
  Nanos step_time;
  std::vector<WorkerTimeline> workers;  // what each compute lane did, waits included
  std::vector<LaneTimeline> lanes;
  std::vector<std::array<Nanos, kWaitCauses>> exposed_waits;  // [worker][cause]
  std::vector<MemoryCurve> memory;                            // [worker]
  std::vector<MemoryByKind> peak;                             // [worker], at the peak of the total
  std::vector<int> peak_live_activations;                     // [worker], (stage, microbatch) pairs
  // 1 - busy time / (workers * step time), fill and drain included.
  double bubble_fraction = 0;
  // Idle between a worker's own first and last action, over workers * step time.
  double inner_idle_fraction = 0;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_SIMULATED_STEP_H_
