#include "planner/tensor_spec.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct DTypeRow {
  DType dtype;
  absl::string_view name;
  int bytes;
};

constexpr std::array<DTypeRow, 5> kDTypes = {{{DType::kFloat32, "F32", 4},
                                              {DType::kBFloat16, "BF16", 2},
                                              {DType::kFloat16, "F16", 2},
                                              {DType::kInt64, "I64", 8},
                                              {DType::kUInt8, "U8", 1}}};

const DTypeRow& RowOf(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row;
  }
  SIPHON_CHECK(false, "every DType has a row in kDTypes");
  return kDTypes[0];
}

}  // namespace

int ElementBytes(DType dtype) { return RowOf(dtype).bytes; }

absl::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown type '", name, "'; known: F32, BF16, F16, I64, U8"));
}

int64_t ElementCount(const TensorSpec& spec) {
  int64_t count = 1;
  for (const int64_t extent : spec.shape) count *= extent;
  return count;
}

Bytes SizeOf(const TensorSpec& spec) {
  return Bytes(ElementCount(spec) * ElementBytes(spec.dtype));
}

TensorSpec Batched(const TensorSpec& sample, int64_t count) {
  TensorSpec batched{sample.dtype, {count}};
  batched.shape.insert(batched.shape.end(), sample.shape.begin(), sample.shape.end());
  return batched;
}

std::string ToString(const TensorSpec& spec) {
  return absl::StrCat(DTypeName(spec.dtype), "[", absl::StrJoin(spec.shape, ", "), "]");
}

}  // namespace siphon
