#include "planner/memory/matrix_scratch.h"

#include <algorithm>

namespace siphon {
namespace {

// Of one block, in elements.
constexpr int64_t kRows = 256;
constexpr int64_t kInner = 1024;
constexpr int64_t kColumns = 64;
constexpr int64_t kPadding = 32;  // of long rows of a turned block
constexpr int64_t kLong = 512;
constexpr int64_t kBookkeeping = 1024;
constexpr int64_t kTurnedBookkeeping = 128;

constexpr int64_t kNarrow = 2;  // bytes of a bf16
constexpr int64_t kWide = 4;    // of a float32

}  // namespace

Bytes MatrixScratch(const MatrixProduct& product) {
  // With both as large, other blocks, of which the largest seen.
  if (product.inner >= kInner && product.columns >= kInner) return kMostMatrixScratch;
  const int64_t rows = std::min(product.rows, kRows);
  const int64_t inner = std::min(product.inner, kInner);
  const int64_t columns = std::min(product.columns, kColumns);
  int64_t bytes = kWide * rows * columns + kNarrow * kColumns * inner + kBookkeeping;
  const int64_t row = inner + (inner >= kLong ? kPadding : 0);
  if (product.turned) bytes += kNarrow * rows * row + kTurnedBookkeeping;
  return Bytes(bytes);
}

}  // namespace siphon
