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

// Why a worker's compute lane stood still before one of its actions.
enum class WaitCause {
  kPredecessor,  // the tensor was not computed yet
  kTransfer,     // computed, but still on its way between two workers
  kSwap,         // on its way out or in
  kStepEnd,      // waiting for other workers around the optimizer step
};
inline constexpr size_t kWaitCauses = static_cast<size_t>(WaitCause::kStepEnd) + 1;
absl::string_view WaitCauseName(WaitCause cause);

// When a lane's copy had less than its path would give it alone, as it shares `by` with others.
struct SlowedTime {
  std::string by;  // the name of a LaneTimeline: "to host of switch 2"
  Nanos begin;
  Nanos end;
  friend bool operator==(const SlowedTime&, const SlowedTime&) = default;
};

// What is not a worker's compute lane: a message channel or copy engine, which takes one copy at a
// time, or a link, uplink or cap, which copies share.
struct LaneTimeline {
  std::string name;          // "worker 0 to worker 1, forward", "to host of switch 2"
  WorkerTimeline intervals;  // the copies, named by the action that started them; none where shared
  Bytes bytes;               // moved in the step
  Nanos busy;                // time with at least one copy under way
  // Of the copies, in the order of time; none where shared.
  std::vector<SlowedTime> slowed;
  friend bool operator==(const LaneTimeline&, const LaneTimeline&) = default;
};

// The most that a drive, or a device without a worker, held of what was swapped to it.
struct HolderPeak {
  std::string name;  // "drive 0", "device 5"
  Bytes bytes;
  friend bool operator==(const HolderPeak&, const HolderPeak&) = default;
};

// Bytes that a worker holds from `time` on, until the next point.
struct MemoryPoint {
  Nanos time;
  MemoryByKind bytes;
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};
using MemoryCurve = std::vector<MemoryPoint>;

// What is no worker and held anything in the step: the host, a device without a worker, a drive.
struct HolderCurve {
  std::string name;  // as HolderPeak, or "the host"
  MemoryCurve curve;
  Bytes capacity;  // 0: no limit
  friend bool operator==(const HolderCurve&, const HolderCurve&) = default;
};

// A step as the simulator sees it. The same integers on every machine. Workers of replicas follow
// one after the other.
struct SimulatedStep {
  Nanos step_time;
  // What each compute lane did: compute actions, STEP, UPDATE, RECOMPUTE, and waits before them.
  // What takes no time is left out.
  std::vector<WorkerTimeline> workers;
  std::vector<LaneTimeline> lanes;  // those that moved anything
  // [worker][cause]; the wait for its first action included, the idle time after its last not.
  std::vector<std::array<Nanos, kWaitCauses>> exposed_waits;
  std::vector<MemoryCurve> memory;         // [worker]
  std::vector<HolderCurve> other_memory;   // the host first
  std::vector<MemoryByKind> peak;          // [worker], at the peak of the total
  std::vector<int> peak_live_activations;  // [worker], (stage, microbatch) pairs
  Bytes host_peak;                         // swapped out, of the server with most of it
  std::vector<HolderPeak> other_peaks;     // those that held anything
  // 1 - busy time / (workers * step time), fill and drain included.
  double bubble_fraction = 0;
  // Idle between a worker's own first and last action, over workers * step time.
  double inner_idle_fraction = 0;
  friend bool operator==(const SimulatedStep&, const SimulatedStep&) = default;
};

// [worker]: the most that each held, of all kinds together.
std::vector<Bytes> TotalPeaks(const SimulatedStep& step);

// The most that a device without a worker held; 0 for any other.
Bytes PeakOfIdleDevice(const SimulatedStep& step, DeviceId device);
std::string IdleDeviceName(DeviceId device);  // HolderPeak::name

// One line an interval: "0F1 [10,20) worker 0", waits as "wait 0B0 [30,45) worker 0".
std::string TimelineText(const SimulatedStep& step);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_SIMULATED_STEP_H_
