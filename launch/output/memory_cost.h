#ifndef SIPHON_LAUNCH_OUTPUT_MEMORY_COST_H_
#define SIPHON_LAUNCH_OUTPUT_MEMORY_COST_H_

#include <cstdint>
#include <string>

#include "launch/output/metrics.h"
#include "planner/units.h"

namespace siphon {

// What a run paid for staying within memory.capacity, all steps and workers together.
struct MemoryCost {
  int64_t steps = 0;
  Bytes to_peers;  // out, to each place
  Bytes to_host;
  Bytes to_nvme;
  Nanos swap_wait;  // for copies, not hidden by anything
  Nanos recompute;
  Nanos workers;  // time of all workers, computing or waiting
};

void Add(const StepMetrics& step, MemoryCost& cost);

// "7.77 MiB a step to other workers; waits for copies took 0.3 % of the workers' time"; empty where
// nothing was moved.
std::string ParkedText(const MemoryCost& cost);
// "4.1 % of the workers' time"; empty where nothing was computed again.
std::string RecomputedText(const MemoryCost& cost);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_MEMORY_COST_H_
