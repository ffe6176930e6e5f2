#ifndef SIPHON_TESTS_LAUNCH_OUTPUT_TIMELINE_TESTING_H_
#define SIPHON_TESTS_LAUNCH_OUTPUT_TIMELINE_TESTING_H_

#include "launch/output/timeline_picture.h"

namespace siphon {

inline Interval BusyWith(absl::string_view action, int64_t begin_ns, int64_t end_ns) {
  return {*ParseAction(action), IntervalKind::kBusy, Nanos(begin_ns), Nanos(end_ns)};
}
inline Interval WaitFor(absl::string_view action, int64_t begin_ns, int64_t end_ns) {
  return {*ParseAction(action), IntervalKind::kWait, Nanos(begin_ns), Nanos(end_ns)};
}

// Two workers, one microbatch: 80 ns.
inline SimulatedStep SmallStep() {
  SimulatedStep step;
  step.step_time = Nanos(80);
  step.workers = {{BusyWith("0F0", 0, 10), WaitFor("0B0", 10, 50), BusyWith("0B0", 50, 70),
                   BusyWith("0STEP", 70, 80)},
                  {WaitFor("1F0", 0, 15), BusyWith("1F0", 15, 25), BusyWith("1B0", 25, 45),
                   BusyWith("1STEP", 70, 80)}};
  step.lanes = {{.name = "worker 0 to worker 1, forward",
                 .intervals = {BusyWith("0SEND_F0", 10, 15)},
                 .bytes = Bytes(640),
                 .busy = Nanos(5)}};
  MemoryByKind idle;
  idle[MemoryKind::kParameters] = Bytes(1000);
  MemoryByKind full = idle;
  full[MemoryKind::kActivations] = Bytes(3000);
  step.memory = {{{Nanos(0), idle}, {Nanos(10), full}, {Nanos(70), idle}}, {{Nanos(0), idle}}};
  step.peak = {full, idle};
  step.peak_live_activations = {1, 1};
  return step;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_OUTPUT_TIMELINE_TESTING_H_
