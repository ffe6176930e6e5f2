#ifndef SIPHON_PLANNER_TENSOR_SPEC_H_
#define SIPHON_PLANNER_TENSOR_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

enum class DType { kFloat32, kBFloat16, kFloat16, kInt64, kUInt8 };

int ElementBytes(DType dtype);
// safetensors' names: "F32", "BF16", "F16", "I64", "U8".
absl::string_view DTypeName(DType dtype);
absl::StatusOr<DType> ParseDType(absl::string_view name);

// Type and shape of a contiguous tensor.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

int64_t ElementCount(const TensorSpec& spec);
Bytes SizeOf(const TensorSpec& spec);
// `sample` with a leading dimension: the shape of `count` samples together.
TensorSpec Batched(const TensorSpec& sample, int64_t count);
// "F32[4, 128]".
std::string ToString(const TensorSpec& spec);

}  // namespace siphon

#endif  // SIPHON_PLANNER_TENSOR_SPEC_H_
