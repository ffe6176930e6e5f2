#include "planner/memory/held_bytes.h"

#include <gtest/gtest.h>

#include "planner/memory/matrix_scratch.h"

namespace siphon {
namespace {

MemoryInputs InputsIn(Precision precision, int moments,
                      HeldVectors vectors = HeldVectors::kFloat32) {
  return {.precision = precision, .vectors = vectors, .moments = moments};
}

TEST(HeldBytes, AreSixteenAnElementInFloat32) {
  for (const HeldVectors vectors : {HeldVectors::kFloat32, HeldVectors::kComputed}) {
    EXPECT_EQ(HeldBytesOf({3, 5}, InputsIn(Precision::kFloat32, 2, vectors)),
              (HeldBytes{.weights = Bytes(60), .gradients = Bytes(60), .optimizer = Bytes(120)}));
    EXPECT_EQ(HeldBytesOf({7}, InputsIn(Precision::kFloat32, 1, vectors)),
              (HeldBytes{.weights = Bytes(28), .gradients = Bytes(28), .optimizer = Bytes(28)}));
  }
}

// 2 for the matrix, 4 for the sum of its gradients, 4 for its master and 4 a moment.
TEST(HeldBytes, OfAMatrixOf16BitsHaveAMaster) {
  for (const Precision precision : {Precision::kBFloat16, Precision::kFloat16}) {
    EXPECT_EQ(HeldBytesOf({3, 5}, InputsIn(precision, 2)),
              (HeldBytes{.weights = Bytes(30), .gradients = Bytes(60), .optimizer = Bytes(180)}));
    EXPECT_EQ(HeldBytesOf({2, 3, 1, 1}, InputsIn(precision, 0)),
              (HeldBytes{.weights = Bytes(12), .gradients = Bytes(24), .optimizer = Bytes(24)}));
  }
}

TEST(HeldBytes, OfVectorsAreThoseOfFloat32OrAMatrixs) {
  EXPECT_EQ(HeldBytesOf({7}, InputsIn(Precision::kBFloat16, 2)),
            HeldBytesOf({7}, InputsIn(Precision::kFloat32, 2)));
  EXPECT_EQ(HeldBytesOf({}, InputsIn(Precision::kFloat16, 2)),
            HeldBytesOf({}, InputsIn(Precision::kFloat32, 2)));
  EXPECT_EQ(HeldBytesOf({7}, InputsIn(Precision::kBFloat16, 2, HeldVectors::kComputed)),
            HeldBytesOf({7, 1}, InputsIn(Precision::kBFloat16, 2)));
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

Bytes OfPairs(const MatrixProduct& product) {
  return MatrixScratch(product, Precision::kBFloat16, MatrixKernels::kPairs);
}
Bytes OfTiles(const MatrixProduct& product, Precision precision) {
  return MatrixScratch(product, precision, MatrixKernels::kTiles);
}

// As the ledger saw them: torch 2.11, one thread, AMD EPYC with AVX512_BF16.
TEST(MatrixScratch, IsWhatWasSeenOfProductsWithoutOverflowingBlocks) {
  EXPECT_EQ(OfPairs({256, 32, 128}), Bytes(70'656));
  EXPECT_EQ(OfPairs({256, 128, 32}), Bytes(50'176));
  EXPECT_EQ(OfPairs({512, 512, 128}), Bytes(132'096));
  EXPECT_EQ(OfPairs({64, 2000, 32}), Bytes(140'288));
  EXPECT_EQ(OfPairs({32, 256, 128, true}), Bytes(58'496));
  EXPECT_EQ(OfPairs({128, 256, 32, true}), Bytes(115'840));
  EXPECT_EQ(OfPairs({512, 512, 128, true}), Bytes(410'752));
}

struct SeenScratch {
  MatrixProduct product;
  Bytes bf16, fp16;
};

// Likewise, on an Intel Xeon with AMX and AVX512_FP16: never less, and where blocks come out even
// hardly more.
TEST(MatrixScratch, IsEnoughForTiles) {
  const SeenScratch even[] = {{{256, 32, 128}, Bytes(9'216), Bytes(107'648)},
                              {{256, 128, 32, true}, Bytes(87'168), Bytes(197'760)},
                              {{512, 512, 128}, Bytes(70'656), Bytes(738'432)},
                              {{512, 512, 128, true}, Bytes(349'312), Bytes(738'432)},
                              {{2048, 512, 512}, Bytes(70'656), Bytes(738'432)},
                              {{128, 256, 64, true}, Bytes(103'552), Bytes(230'528)}};
  for (const SeenScratch& seen : even) {
    EXPECT_GE(OfTiles(seen.product, Precision::kBFloat16), seen.bf16);
    EXPECT_LE(OfTiles(seen.product, Precision::kBFloat16), seen.bf16 + Bytes(12'288));
    EXPECT_EQ(OfTiles(seen.product, Precision::kFloat16), seen.fp16);
  }
  const SeenScratch uneven[] = {{{64, 2000, 32}, Bytes(264'192), Bytes(537'728)},
                                {{64, 2000, 32, true}, Bytes(569'344), Bytes(275'584)},
                                {{4096, 1000, 512}, Bytes(465'024), Bytes(1'721'472)},
                                {{64, 50, 128, true}, Bytes(38'784), Bytes(0)},
                                {{1024, 1200, 1000}, Bytes(477'312), Bytes(2'376'832)},
                                {{4096, 4096, 16}, Bytes(1'057'920), Bytes(0)},
                                {{8, 8192, 32, true}, Bytes(1'183'360), Bytes(0)},
                                {{4096, 4096, 4096}, Bytes(862'592), Bytes(2'376'832)}};
  for (const SeenScratch& seen : uneven) {
    EXPECT_GE(OfTiles(seen.product, Precision::kBFloat16), seen.bf16);
    EXPECT_GE(OfTiles(seen.product, Precision::kFloat16), seen.fp16);
  }
}

TEST(MatrixScratch, IsNoneWithoutKernels) {
  const MatrixProduct product{512, 512, 512};
  for (const MatrixKernels kernels : {MatrixKernels::kPairs, MatrixKernels::kTiles}) {
    EXPECT_EQ(MatrixScratch(product, Precision::kFloat32, kernels), Bytes(0));
  }
  EXPECT_EQ(MatrixScratch(product, Precision::kFloat16, MatrixKernels::kPairs), Bytes(0));
}

TEST(MatrixScratch, GrowsUpToABlock) {
  constexpr Bytes kMost{1'721'472};
  for (const int64_t size : {64, 256, 1024, 4096, 1 << 20}) {
    for (const bool turned : {false, true}) {
      const MatrixProduct product{size, size, size, turned};
      const MatrixProduct twice{2 * size, 2 * size, 2 * size, turned};
      EXPECT_LE(OfPairs(product), kMost);
      EXPECT_LE(OfPairs(product), OfPairs(twice));
      EXPECT_LE(OfTiles(product, Precision::kFloat16), OfTiles(twice, Precision::kFloat16));
    }
  }
}

}  // namespace
}  // namespace siphon
