#ifndef SIPHON_PLANNER_BASELINES_VIRTUAL_MEMORY_STEP_H_
#define SIPHON_PLANNER_BASELINES_VIRTUAL_MEMORY_STEP_H_

#include "absl/status/statusor.h"
#include "planner/baselines/baseline_problem.h"

namespace siphon {

// Data parallelism where each of N devices has a copy of everything in virtual memory of its own,
// after the analysis of Harmony (Li et al., HotOS 2021, "Analytical comparison"): a device holds
// one layer's operation at a time. What it needs comes in before, and goes out behind it:
//   forward    in: weights                          out: weights, what it saved
//   backward   in: weights, gradients, what it saved   out: weights, gradients
//   update     in and out: weights, gradients, optimizer state; once a step, on the device
// so with m microbatches a device the weights alone are (4 m + 2) N |W| bytes a step. Recency does
// not help: a loop over more than fits evicts each tensor just before it is needed again. Where
// everything fits, nothing moves. Between the last backward and the update, gradients are summed
// over all devices: 2 (N-1)/N |G| sent by each.
//
// A step is: all copies in, all computation, all copies out, one after the other; prefetch copies
// in what the next operation needs while this one runs (room for two).

// IBM's Large Model Support (Le et al., arXiv:1807.02037), as Harmony measures it: copies at the
// full rate of pinned ones.
absl::StatusOr<BaselineStep> LmsStep(const BaselineProblem& problem);

// Demand paging. ASSUMED, as in planner/performance/unified_memory.cc: faults and evictions move
// pages at half the rate of copies, prefetches at nine tenths.
absl::StatusOr<BaselineStep> UnifiedMemoryStep(const BaselineProblem& problem);
absl::StatusOr<BaselineStep> PrefetchedUnifiedMemoryStep(const BaselineProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BASELINES_VIRTUAL_MEMORY_STEP_H_
