#ifndef SIPHON_PLANNER_MEMORY_MATRIX_SCRATCH_H_
#define SIPHON_PLANNER_MEMORY_MATRIX_SCRATCH_H_

#include <cstdint>

#include "planner/units.h"

namespace siphon {

// A product [rows, inner] x [inner, columns] of bf16 matrices.
struct MatrixProduct {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  // Whether the left one is read against its order in memory, as in the gradient of weights.
  bool turned = false;
};

// At least what LibTorch's library for them (oneDNN) takes for itself while it multiplies, and
// books like a tensor: a float32 block of the result, packed blocks of the right matrix, and of the
// left one where that is turned. Blocks stop growing, so that this is never more than
// kMostMatrixScratch.
//
// Fitted to torch 2.11 with one thread on a processor with AVX512_BF16 (AMD EPYC, 2026), for 16
// shapes of 64 x 32 x 2000 to 4096 x 4096 x 4096: exact for most inner dimensions below 1024. Other
// processors' kernels take other blocks: a measured profile knows those.
inline constexpr Bytes kMostMatrixScratch{1'721'472};
Bytes MatrixScratch(const MatrixProduct& product);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_MATRIX_SCRATCH_H_
