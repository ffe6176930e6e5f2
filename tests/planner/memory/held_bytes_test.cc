#include "planner/memory/held_bytes.h"

#include <gtest/gtest.h>

#include "planner/memory/matrix_scratch.h"

namespace siphon {
namespace {

TEST(HeldBytes, AreSixteenAnElementInFloat32) {
  EXPECT_EQ(HeldBytesOf({3, 5}, Precision::kFloat32, 2),
            (HeldBytes{.weights = Bytes(60), .gradients = Bytes(60), .optimizer = Bytes(120)}));
  EXPECT_EQ(HeldBytesOf({7}, Precision::kFloat32, 1),
            (HeldBytes{.weights = Bytes(28), .gradients = Bytes(28), .optimizer = Bytes(28)}));
}

// 2 for the matrix, 4 for the sum of its gradients, 4 for its master and 4 a moment.
TEST(HeldBytes, OfAMatrixOf16BitsHaveAMaster) {
  for (const Precision precision : {Precision::kBFloat16, Precision::kFloat16}) {
    EXPECT_EQ(HeldBytesOf({3, 5}, precision, 2),
              (HeldBytes{.weights = Bytes(30), .gradients = Bytes(60), .optimizer = Bytes(180)}));
    EXPECT_EQ(HeldBytesOf({2, 3, 1, 1}, precision, 0),
              (HeldBytes{.weights = Bytes(12), .gradients = Bytes(24), .optimizer = Bytes(24)}));
  }
}

TEST(HeldBytes, OfVectorsAreThoseOfFloat32) {
  EXPECT_EQ(HeldBytesOf({7}, Precision::kBFloat16, 2), HeldBytesOf({7}, Precision::kFloat32, 2));
  EXPECT_EQ(HeldBytesOf({}, Precision::kFloat16, 2), HeldBytesOf({}, Precision::kFloat32, 2));
}

TEST(InPrecision, NarrowsWhatLayersHandOnAndNothingElse) {
  const ModelSpec wide =
      BuildModelSpec({.kind = "gpt", .layers = 2, .hidden = 8, .heads = 2, .vocabulary = 10})
          .value();
  const ModelSpec narrow = InPrecision(wide, Precision::kBFloat16);
  ASSERT_EQ(narrow.layers.size(), wide.layers.size());
  EXPECT_EQ(narrow.input, wide.input);
  for (size_t layer = 0; layer < wide.layers.size(); ++layer) {
    EXPECT_EQ(narrow.layers[layer].parameters, wide.layers[layer].parameters);
    ASSERT_EQ(narrow.layers[layer].outputs.size(), wide.layers[layer].outputs.size());
    for (size_t output = 0; output < wide.layers[layer].outputs.size(); ++output) {
      EXPECT_EQ(narrow.layers[layer].outputs[output].dtype, DType::kBFloat16);
      EXPECT_EQ(narrow.layers[layer].outputs[output].shape,
                wide.layers[layer].outputs[output].shape);
    }
  }
  EXPECT_EQ(InPrecision(narrow, Precision::kBFloat16), narrow);
  EXPECT_EQ(InPrecision(wide, Precision::kFloat32), wide);
}

// As the ledger saw them: torch 2.11, one thread, AMD EPYC with AVX512_BF16.
TEST(MatrixScratch, IsWhatWasSeenOfProductsWithoutOverflowingBlocks) {
  EXPECT_EQ(MatrixScratch({256, 32, 128}), Bytes(70'656));
  EXPECT_EQ(MatrixScratch({256, 128, 32}), Bytes(50'176));
  EXPECT_EQ(MatrixScratch({512, 512, 128}), Bytes(132'096));
  EXPECT_EQ(MatrixScratch({64, 2000, 32}), Bytes(140'288));
  EXPECT_EQ(MatrixScratch({32, 256, 128, true}), Bytes(58'496));
  EXPECT_EQ(MatrixScratch({128, 256, 32, true}), Bytes(115'840));
  EXPECT_EQ(MatrixScratch({512, 512, 128, true}), Bytes(410'752));
}

TEST(MatrixScratch, StopsGrowing) {
  for (const int64_t size : {64, 256, 1024, 4096, 1 << 20}) {
    for (const bool turned : {false, true}) {
      EXPECT_LE(MatrixScratch({size, size, size, turned}), kMostMatrixScratch);
      EXPECT_LE(MatrixScratch({size, size, size, turned}),
                MatrixScratch({2 * size, 2 * size, 2 * size, turned}));
    }
  }
}

}  // namespace
}  // namespace siphon
