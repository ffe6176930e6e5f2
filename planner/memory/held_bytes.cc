#include "planner/memory/held_bytes.h"

namespace siphon {

DType ComputedType(Precision precision) {
  switch (precision) {
    case Precision::kBFloat16:
      return DType::kBFloat16;
    case Precision::kFloat16:
      return DType::kFloat16;
    case Precision::kFloat32:
      break;
  }
  return DType::kFloat32;
}

DType ParameterType(const std::vector<int64_t>& shape, DType computed, HeldVectors vectors) {
  const bool is_vector = shape.size() < 2;
  return is_vector && vectors == HeldVectors::kFloat32 ? DType::kFloat32 : computed;
}

HeldBytes HeldBytesOf(const std::vector<int64_t>& shape, const MemoryInputs& inputs) {
  const DType type = ParameterType(shape, ComputedType(inputs.precision), inputs.vectors);
  const Bytes wide = SizeOf({DType::kFloat32, shape});
  const int64_t masters = type == DType::kFloat32 ? 0 : 1;
  return {.weights = SizeOf({type, shape}),
          .gradients = wide,
          .optimizer = wide * (masters + int64_t{inputs.moments})};
}

HeldBytes operator+(const HeldBytes& a, const HeldBytes& b) {
  return {a.weights + b.weights, a.gradients + b.gradients, a.optimizer + b.optimizer};
}

ModelSpec InPrecision(ModelSpec model, Precision precision) {
  for (LayerSpec& layer : model.layers) {
    for (TensorSpec& output : layer.outputs) {
      if (output.dtype == DType::kFloat32) output.dtype = ComputedType(precision);
    }
  }
  return model;
}

}  // namespace siphon
