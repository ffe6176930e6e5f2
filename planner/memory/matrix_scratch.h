#ifndef SIPHON_PLANNER_MEMORY_MATRIX_SCRATCH_H_
#define SIPHON_PLANNER_MEMORY_MATRIX_SCRATCH_H_

#include <cstdint>

#include "planner/memory/memory_estimate.h"
#include "planner/units.h"

namespace siphon {

// A product [rows, inner] x [inner, columns] of 16-bit matrices.
struct MatrixProduct {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  // Whether the left one is read against its order in memory, as in the gradient of weights.
  bool turned = false;
};

// At least what LibTorch's library for them (oneDNN) takes for itself while it multiplies, and
// books like a tensor: a float32 block of the result, packed blocks of the right matrix, and of the
// left one where that is turned or has to be widened. 0 in fp32, and where fp16 has no kernels.
//
// Fitted to torch 2.11 with one thread. kPairs: an AMD EPYC of 2026, 16 shapes of 64 x 32 x 2000 to
// 4096 x 4096 x 4096, exact for most inner dimensions below 1024. kTiles: an Intel Xeon of 2026,
// 8,000 products with up to 4096 rows and columns and inner dimensions up to 8192; never less than
// seen, for fp16 1.3 and for bf16 1.6 times as much on average. A measured profile knows what a
// processor really takes.
Bytes MatrixScratch(const MatrixProduct& product, Precision precision, MatrixKernels kernels);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_MATRIX_SCRATCH_H_
