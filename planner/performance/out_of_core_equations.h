#ifndef SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_EQUATIONS_H_
#define SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_EQUATIONS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "planner/performance/out_of_core.h"
#include "planner/units.h"

namespace siphon {

// The paper's equations about whole layers (7 to 12). Those about buffers of one layer are in
// single_layer.h.

// Equation 7: layer l computes while layer l - 1 is copied; the section ends with the later.
Nanos SectionTime(Nanos compute, Nanos copy);
// Equation 9: the part of a section in which the device computes; 1 for an empty section.
double SectionUtilization(Nanos compute, Nanos copy);

// Layers that all cost the same, with times of a layer's whole buffer.
struct EqualLayers {
  int64_t layers = 0;
  Nanos forward;
  Nanos backward;
  Nanos copy_out;
  Nanos copy_in;
  Bytes saved;
  int64_t buffers = 0;  // whole ones that fit in near memory; at most `layers`
};
// Errors: InvalidArgument if there are none, or naming the first that differs from layer 1.
absl::StatusOr<EqualLayers> EqualLayersOf(const OutOfCoreProblem& problem);

// Equations 10 and 11, derived anew: when the backward of equal layers under capacity-based
// swapping first waits for a copy, since the backward began; nothing if it never does.
//
// The paper equates a sum of Proc_th x T_proc, which counts buffers, with Swap_in_Th x T_catch, in
// buffers, plus NM_Ca, which is bytes; and it sums over the Ca_layers that fit at first, whose
// bytes are NM_Ca, so that with units mended its T_catch is always 0. What is meant: processing has
// caught up when the bytes of all layers that it has used or wants next exceed what near memory had
// at first plus what came in. With n counting layers backward from the last, K of which are there:
//
//   copy of layer n > K ends at   backward + (n - K) copy_in    (the first copy needs a freed
//   buffer) layer n is wanted at          (n - 1) backward              (no wait so far) T_catch =
//   (n* - 1) backward,  n* the first n > K at which the copy ends later than that.
//
// For many small layers this tends to NM_Ca / (processing rate - swap-in rate), both in bytes a
// second. It holds for two or more buffers; with a single one every copy is waited for.
std::optional<Nanos> CapacityBasedCatchUp(const EqualLayers& equal);

// Equation 12: utilisation of the backward before and after T_catch.
double CapacityBasedUtilization(const EqualLayers& equal, Nanos since_backward_began);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_EQUATIONS_H_
