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

// What a parameter of this shape is held in, by workers that compute in `computed`.
DType ParameterType(const std::vector<int64_t>& shape, DType computed, HeldVectors vectors);

// Bytes of one parameter. Gradients, which are summed over microbatches, and moments are float32
// always. One that is computed with in 16 bits has a float32 master beside its moments, which the
// optimizer works on: 18 bytes an element with Adam, where a float32 one has 16.
struct HeldBytes {
  Bytes weights;
  Bytes gradients;  // of one use
  Bytes optimizer;  // master and moments
  friend bool operator==(const HeldBytes&, const HeldBytes&) = default;
};
// Of `inputs`: precision, vectors, moments.
HeldBytes HeldBytesOf(const std::vector<int64_t>& shape, const MemoryInputs& inputs);
HeldBytes operator+(const HeldBytes& a, const HeldBytes& b);

// The model with what its layers hand on in the numbers of the job. The data stays as it is.
ModelSpec InPrecision(ModelSpec model, Precision precision);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_HELD_BYTES_H_
