#ifndef SIPHON_PLANNER_MEMORY_HELD_BYTES_H_
#define SIPHON_PLANNER_MEMORY_HELD_BYTES_H_

#include <cstdint>
#include <vector>

#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/tensor_spec.h"
#include "planner/units.h"

namespace siphon {

// In which numbers our workers hold a model, and what that takes.

// What activations, and parameters of two or more dimensions, are computed with.
DType ComputedType(Precision precision);

// In what a layer computes with a parameter. Vectors (biases, and weights of norms) stay float32
// whatever the rest is: norms want them so, and they are a thousandth of all.
DType ParameterType(const std::vector<int64_t>& shape, DType computed);

// Bytes of one parameter. Gradients, which are summed over microbatches, and moments are float32
// always. One that is computed with in 16 bits has a float32 master beside its moments, which the
// optimizer works on: 18 bytes an element with Adam, where a float32 one has 16.
struct HeldBytes {
  Bytes weights;
  Bytes gradients;  // of one use
  Bytes optimizer;  // master and moments
  friend bool operator==(const HeldBytes&, const HeldBytes&) = default;
};
HeldBytes HeldBytesOf(const std::vector<int64_t>& shape, Precision precision, int moments);
HeldBytes operator+(const HeldBytes& a, const HeldBytes& b);

// The model with what its layers hand on in the numbers of the job. The data stays as it is.
ModelSpec InPrecision(ModelSpec model, Precision precision);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_HELD_BYTES_H_
