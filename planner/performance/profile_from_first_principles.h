#ifndef SIPHON_PLANNER_PERFORMANCE_PROFILE_FROM_FIRST_PRINCIPLES_H_
#define SIPHON_PLANNER_PERFORMANCE_PROFILE_FROM_FIRST_PRINCIPLES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_profile.h"
#include "planner/model_spec.h"
#include "planner/performance/device_spec.h"
#include "planner/units.h"

namespace siphon {

// Work of one pass of one layer.
struct LayerWork {
  int64_t flops = 0;
  Bytes traffic;  // read from and written to the device's memory
  int kernels = 0;
  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};

// max(flops / achieved flops, traffic / achieved bandwidth) + kernels x launch overhead, rounded up
// to a nanosecond: after Qi et al., "Paleo: a performance model for deep neural networks", ICLR
// 2017, section 3. Paleo adds reading, computing and writing; kernels of today overlap them, hence
// the maximum.
Nanos TimeOf(const LayerWork& work, const DeviceSpec& device, Precision precision);

// The passes of one layer on one microbatch.
struct LayerPasses {
  LayerWork forward;
  LayerWork input_backward;  // nothing for the first layer: no one wants its input's gradient
  LayerWork weight_backward;
};

// What to count, for a layer with `own` saved tensors that no neighbour has, `input`, `output` and
// weights:
//  forward           the layer's operations; input and weights read, output written, each own
//                    tensor written and read once
//  input backward    as many operations; output gradient and weights read, input gradient written,
//                    each own tensor read and its gradient written and read
//  weight backward   as many operations; input and output gradient read, weight gradient written
// Kernels: one for each saved tensor and at least one, in the backward passes together twice that.
struct LayerSizes {
  int64_t flops = 0;  // of the forward
  Bytes input;
  Bytes output;
  Bytes weights;
  Bytes own;
  int saved_tensors = 0;
};
LayerPasses PassesOf(const LayerSizes& sizes);

// A profile of what was never measured: times by the device description, sizes by the model.
// Activations are the model's saved tensors, or the published formula where it lists none; a
// tensor that two neighbours keep counts with the earlier. Two moments for the optimizer (Adam).
// Requires: a valid model (ValidateModelSpec).
// Errors: InvalidArgument for a microbatch below 1, or sizes beyond 63 bits; FailedPrecondition
// naming a layer whose activations are in no source.
absl::StatusOr<ModelProfile> ProfileFromFirstPrinciples(const ModelSpec& model,
                                                        const DeviceSpec& device,
                                                        int64_t microbatch, Precision precision);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_PROFILE_FROM_FIRST_PRINCIPLES_H_
