#ifndef SIPHON_PLANNER_PERFORMANCE_SINGLE_LAYER_H_
#define SIPHON_PLANNER_PERFORMANCE_SINGLE_LAYER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace siphon {

// One layer cut into buffers of one size, processed while more are swapped in: equations 1 to 6 of
// the out-of-core paper. Whole buffers, whole time steps of any length.
struct SingleLayer {
  int64_t processed_per_step = 1;   // Proc_Th x T
  int64_t swapped_in_per_step = 1;  // Swap_in_Th x T; the rate is SwapRate's (equation 5)
  int64_t latency_steps = 1;        // Proc_L in steps
  int64_t capacity = 1;             // of near memory
  int64_t available = 0;            // buffers there at first
};

// Little's law: concurrency = latency x throughput, the buffers that keep the device full.
int64_t FullConcurrency(const SingleLayer& layer);

// Equation 2 with its bound from the text under equation 3: min(1, available / full concurrency).
double Utilization(const SingleLayer& layer, int64_t available);

// Equation 6, once: what is left after processing, plus what comes in. Room is what the step began
// with: a buffer freed in a step is filled in the next.
int64_t NextAvailable(const SingleLayer& layer, int64_t available);

// Equation 6 repeated: buffers available after 0, 1, .. `steps` steps.
// Errors: InvalidArgument for a rate, latency or capacity that is not positive, or for more
// available buffers than the capacity.
absl::StatusOr<std::vector<int64_t>> AvailableBuffers(const SingleLayer& layer, int64_t steps);

// The same after `steps` steps without repeating anything, for swap-in at least as fast as
// processing (equation 3, linear until near memory is full, then capacity - processed) and for
// slower swap-in (linear down, then what one step brings).
// Requires: valid as above; at least one step's processing available at first, and a capacity of
// processed_per_step + swapped_in_per_step or more, so that both can go on at once.
int64_t AvailableAfter(const SingleLayer& layer, int64_t steps);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_SINGLE_LAYER_H_
