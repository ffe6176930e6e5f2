#include "planner/tensor_spec.h"

#include <gtest/gtest.h>

#include <string>

namespace siphon {
namespace {

TEST(TensorSpec, CountsElementsAndBytes) {
  const TensorSpec spec{DType::kBFloat16, {4, 128, 3}};
  EXPECT_EQ(ElementCount(spec), 1536);
  EXPECT_EQ(SizeOf(spec), Bytes(3072));
  EXPECT_EQ(ElementCount({DType::kFloat32, {}}), 1);
  EXPECT_EQ(SizeOf({DType::kInt64, {0, 5}}), Bytes(0));
}

TEST(TensorSpec, PutsTheBatchInFront) {
  EXPECT_EQ(Batched({DType::kFloat32, {64, 32}}, 8), (TensorSpec{DType::kFloat32, {8, 64, 32}}));
  EXPECT_EQ(ToString(Batched({DType::kInt64, {64}}, 8)), "I64[8, 64]");
}

TEST(DType, NamesParseBack) {
  for (const DType dtype :
       {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt64, DType::kUInt8}) {
    const absl::StatusOr<DType> parsed = ParseDType(DTypeName(dtype));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, dtype);
  }
  EXPECT_EQ(std::string(ParseDType("F64").status().message()),
            "unknown type 'F64'; known: F32, BF16, F16, I64, U8");
}

TEST(DType, HasTheWidthThatItsNameSays) {
  EXPECT_EQ(ElementBytes(DType::kFloat32), 4);
  EXPECT_EQ(ElementBytes(DType::kBFloat16), 2);
  EXPECT_EQ(ElementBytes(DType::kFloat16), 2);
  EXPECT_EQ(ElementBytes(DType::kInt64), 8);
  EXPECT_EQ(ElementBytes(DType::kUInt8), 1);
}

}  // namespace
}  // namespace siphon
