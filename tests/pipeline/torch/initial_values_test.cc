// What parameters start with, in every precision, by any number of threads.

#include "pipeline/torch/parameters/initial_values.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/keyed_random.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/memory/held_bytes.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

constexpr uint64_t kSeed = 5;

using Bits = std::map<std::string, std::string>;  // of parameter, by name

std::string BitsOf(const at::Tensor& tensor) {
  const auto bytes = BytesOf(tensor);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bits StateOf(const Model& model, StateTensor::Kind kind, int threads) {
  const int layers = static_cast<int>(model.spec.layers.size());
  auto stage = MakeTorchStage(model, {.stages = {{0, layers}}}, StageId(0), kSeed,
                              OptimizerOptions(), {}, {}, threads);
  EXPECT_TRUE(stage.ok()) << stage.status();
  Bits bits;
  for (const StateTensor& tensor : (*stage)->State()) {
    if (tensor.kind != kind) continue;
    bits[tensor.name] = {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
  }
  return bits;
}

// Each by itself, on this thread.
Bits Drawn(const ModelSpec& spec, DType computed, HeldVectors vectors = HeldVectors::kFloat32) {
  Bits bits;
  for (const Parameter& parameter : CanonicalParameters(spec)) {
    const ParameterUse first = parameter.uses[0];
    const at::Tensor wide =
        InitialParameter(spec.layers[first.layer].parameters[first.index], kSeed);
    const DType type = ParameterType(parameter.shape, computed, vectors);
    bits[parameter.name] = BitsOf(wide.to(ToScalarType(type)));
  }
  return bits;
}

class InitialValues : public testing::TestWithParam<int> {
 protected:
  static Model Gpt(Precision precision, HeldVectors vectors = HeldVectors::kFloat32) {
    Model model = BuildModel(TinyGpt()).value();
    SetPrecision(precision, vectors, model);
    return model;
  }
};

TEST_P(InitialValues, AreDrawnByTheirKeysAlone) {
  const Model model = Gpt(Precision::kFloat32);
  EXPECT_EQ(StateOf(model, StateTensor::Kind::kParameter, GetParam()),
            Drawn(model.spec, DType::kFloat32));
}

TEST_P(InitialValues, Of16BitsAreRoundedFromTheMasters) {
  for (const HeldVectors vectors : {HeldVectors::kFloat32, HeldVectors::kComputed}) {
    const Model model = Gpt(Precision::kBFloat16, vectors);
    const Bits values = StateOf(model, StateTensor::Kind::kParameter, GetParam());
    EXPECT_EQ(values, Drawn(model.spec, DType::kBFloat16, vectors));
    const Bits masters = StateOf(model, StateTensor::Kind::kMaster, GetParam());
    const Bits wide = Drawn(model.spec, DType::kFloat32);
    EXPECT_FALSE(masters.empty());
    EXPECT_EQ(masters.size() == values.size(), vectors == HeldVectors::kComputed);
    for (const auto& [name, bits] : masters) EXPECT_EQ(bits, wide.at(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, InitialValues, testing::Values(1, 2, 5, 100));

// On whichever thread it comes to light.
TEST(InitialValuesFailure, ReachesWhoAsked) {
  std::vector<ParameterSpec> specs(6, {"w", {1000}, Initializer::kNormal, 1.0});
  std::vector<HeldParameter> held(6);
  std::vector<StartOf> starts;
  for (size_t index = 0; index < held.size(); ++index) {
    held[index].first = &specs[index];
    held[index].value = at::empty({1000}, index == 3 ? at::kComplexFloat : at::kFloat);
    if (index == 3) held[index].value = held[index].value.expand({2, 1000});
    starts.push_back({&held[index], {GroupKind::kParameters}});
  }
  for (const int threads : {1, 4}) {
    const absl::Status failed = CallTorch("drawing", [&] { Initialise(kSeed, starts, threads); });
    EXPECT_FALSE(failed.ok());
  }
}

}  // namespace
}  // namespace siphon
