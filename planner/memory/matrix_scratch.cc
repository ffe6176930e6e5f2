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

constexpr int64_t kNarrow = 2;  // bytes of a 16-bit number
constexpr int64_t kWide = 4;    // of a float32

int64_t RoundedUp(int64_t elements, int64_t block) {
  return (elements + block - 1) / block * block;
}

// With both dimensions as large, other blocks, of which the largest seen.
constexpr Bytes kMostOfPairs{1'721'472};

Bytes PairsOfBFloat16(const MatrixProduct& product) {
  if (product.inner >= kInner && product.columns >= kInner) return kMostOfPairs;
  const int64_t rows = std::min(product.rows, kRows);
  const int64_t inner = std::min(product.inner, kInner);
  const int64_t columns = std::min(product.columns, kColumns);
  int64_t bytes = kWide * rows * columns + kNarrow * kColumns * inner + kBookkeeping;
  const int64_t row = inner + (inner >= kLong ? kPadding : 0);
  if (product.turned) bytes += kNarrow * rows * row + kTurnedBookkeeping;
  return Bytes(bytes);
}

// The right matrix in strips of all its inner dimension, which are there twice in a range of it;
// a wide result of long sums; and the left matrix where it is turned, of which blocks vary most
// where nothing comes out even.
Bytes TilesOfBFloat16(const MatrixProduct& product) {
  constexpr int64_t kTile = 32;
  constexpr int64_t kFewestRows = 16;
  constexpr int64_t kTwice[] = {4096, 8192};
  constexpr int64_t kMoreBookkeeping = 10'240;
  constexpr int64_t kLongSums = 768;
  constexpr int64_t kWideResult = 328'832;
  constexpr int64_t kMostTurned = 823'296;
  const int64_t strip = kNarrow * kColumns * RoundedUp(product.inner, kColumns);
  const bool twice = product.inner >= kTwice[0] && product.inner < kTwice[1];
  int64_t bytes = (twice ? 2 : 1) * strip + kMoreBookkeeping;
  if (product.inner > kLongSums && product.columns > 2 * kColumns) bytes += kWideResult;
  if (!product.turned) return Bytes(bytes);
  const int64_t rows = std::clamp(product.rows, kFewestRows, kRows);
  if (product.inner <= kInner && product.inner % kTile == 0) {
    const int64_t row = product.inner + (product.inner >= kLong ? kPadding : 0);
    return Bytes(bytes + kNarrow * rows * row + kBookkeeping + kTurnedBookkeeping);
  }
  const int64_t uneven = 3 * rows * RoundedUp(product.inner, kTile);
  return Bytes(bytes + std::min(uneven, kMostTurned) + 8 * kBookkeeping);
}

// Both matrices in float32, block by block.
Bytes WidenedFloat16(const MatrixProduct& product) {
  constexpr int64_t kUneven = 8;
  constexpr int64_t kTile = 32;
  constexpr int64_t kManyColumns = 384;
  constexpr int64_t kMostColumns = 1024;
  constexpr int64_t kWidePadding = 16;
  const int64_t rows = std::min(RoundedUp(product.rows, kUneven), kRows);
  const bool is_large = product.inner > kLong && product.columns > 2 * kColumns;
  const bool is_long = product.inner > kInner;
  const int64_t most = is_long ? kMostColumns : is_large ? kManyColumns : kColumns;
  const int64_t columns =
      std::min(is_long ? RoundedUp(product.columns, kColumns) : product.columns, most);
  const int64_t inner = is_large ? kInner : std::min(RoundedUp(product.inner, kTile), kInner);
  const int64_t row = inner + (inner >= kLong ? kWidePadding : 0);
  return Bytes(kWide * (rows * columns + kColumns * inner + rows * row) + kBookkeeping +
               kTurnedBookkeeping);
}

}  // namespace

Bytes MatrixScratch(const MatrixProduct& product, Precision precision, MatrixKernels kernels) {
  const bool tiles = kernels == MatrixKernels::kTiles;
  switch (precision) {
    case Precision::kFloat32:
      return Bytes(0);
    case Precision::kBFloat16:
      return tiles ? TilesOfBFloat16(product) : PairsOfBFloat16(product);
    case Precision::kFloat16:
      return tiles ? WidenedFloat16(product) : Bytes(0);
  }
  return Bytes(0);
}

}  // namespace siphon
