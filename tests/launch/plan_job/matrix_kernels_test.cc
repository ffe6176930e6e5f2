#include "launch/plan_job/matrix_kernels.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(MatrixKernels, AreTilesOfProcessorsWithBothUnits) {
  EXPECT_EQ(MatrixKernelsOf("processor\t: 0\nflags\t\t: fpu avx512_bf16 avx512_fp16 amx_bf16\n"),
            MatrixKernels::kTiles);
  EXPECT_EQ(MatrixKernelsOf("flags : fpu avx512_bf16 avx512_fp16 amx_tile\n"),
            MatrixKernels::kPairs);
  EXPECT_EQ(MatrixKernelsOf("flags : fpu avx512_bf16 amx_bf16\n"), MatrixKernels::kPairs);
}

// Another processor's "Features", a line that only begins so, and nothing at all.
TEST(MatrixKernels, ArePairsElsewhere) {
  EXPECT_EQ(MatrixKernelsOf("flags\t\t: fpu vme avx2 avx512_bf16\nvmx flags : amx_bf16\n"),
            MatrixKernels::kPairs);
  EXPECT_EQ(MatrixKernelsOf("Features : fp asimd bf16\n"), MatrixKernels::kPairs);
  EXPECT_EQ(MatrixKernelsOf(""), MatrixKernels::kPairs);
}

}  // namespace
}  // namespace siphon
