#include "planner/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

ModelSpec Built(const ModelOptions& options) {
  absl::StatusOr<ModelSpec> model = BuildModelSpec(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : ModelSpec{};
}

std::string ErrorOf(const ModelOptions& options) {
  const absl::StatusOr<ModelSpec> model = BuildModelSpec(options);
  EXPECT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(model.status().message());
}

ModelOptions Tiny(std::string kind) {
  ModelOptions options;
  options.kind = std::move(kind);
  options.layers = 2;
  options.hidden = 8;
  options.heads = 2;
  options.vocabulary = 11;
  options.sequence_length = 5;
  return options;
}

// "name [extents]" of each parameter.
std::vector<std::string> Listing(const LayerSpec& layer) {
  std::vector<std::string> lines;
  for (const ParameterSpec& parameter : layer.parameters) {
    std::string line = parameter.name;
    for (const int64_t extent : parameter.shape) absl::StrAppend(&line, " ", extent);
    lines.push_back(line);
  }
  return lines;
}

TEST(GptSpec, HasThePublishedNumberOfParametersOfGpt2Small) {
  ModelOptions options;
  options.layers = 12;
  options.hidden = 768;
  options.heads = 12;
  options.vocabulary = 50257;
  options.sequence_length = 1024;
  EXPECT_EQ(ParameterCount(Built(options)), 124'439'808);
  options.tie_embeddings = false;
  EXPECT_EQ(ParameterCount(Built(options)), 124'439'808 + 50257 * 768);
}

TEST(BertSpec, HasTheNumberOfParametersOfBertBaseByHand) {
  ModelOptions options;
  options.kind = "bert";
  options.layers = 12;
  options.hidden = 768;
  options.heads = 12;
  options.vocabulary = 30522;
  options.sequence_length = 512;
  const int64_t h = 768;
  const int64_t embeddings = (30522 + 512 + 2) * h + 2 * h;
  const int64_t attention = 4 * (h * h + h) + 2 * h;
  const int64_t perceptron = (4 * h * h + 4 * h) + (4 * h * h + h) + 2 * h;
  const int64_t head = (h * h + h) + 2 * h + 30522;
  EXPECT_EQ(embeddings + 12 * (attention + perceptron) + head, 109'514'298);
  EXPECT_EQ(ParameterCount(Built(options)), 109'514'298);
}

TEST(MlpSpec, HasTheNumberOfParametersByHand) {
  // Embedding 11 x 8, two hidden layers 8 x 8 + 8, output 11 x 8 + 11.
  EXPECT_EQ(ParameterCount(Built(Tiny("mlp"))), 88 + 2 * 72 + 99);
}

TEST(GptSpec, HasTheNamesAndLayoutsOfHuggingFace) {
  const ModelSpec model = Built(Tiny("gpt"));
  ASSERT_EQ(model.layers.size(), 4u);
  EXPECT_EQ(model.layers[0].name, "transformer.embeddings");
  EXPECT_EQ(model.layers[0].kind, "gpt_embedding");
  EXPECT_EQ(Listing(model.layers[0]), (std::vector<std::string>{"transformer.wte.weight 11 8",
                                                                "transformer.wpe.weight 5 8"}));
  EXPECT_EQ(model.layers[2].name, "transformer.h.1");
  EXPECT_EQ(model.layers[2].kind, "gpt_block");
  EXPECT_EQ(Listing(model.layers[2]),
            (std::vector<std::string>{
                "transformer.h.1.ln_1.weight 8", "transformer.h.1.ln_1.bias 8",
                "transformer.h.1.attn.c_attn.weight 8 24", "transformer.h.1.attn.c_attn.bias 24",
                "transformer.h.1.attn.c_proj.weight 8 8", "transformer.h.1.attn.c_proj.bias 8",
                "transformer.h.1.ln_2.weight 8", "transformer.h.1.ln_2.bias 8",
                "transformer.h.1.mlp.c_fc.weight 8 32", "transformer.h.1.mlp.c_fc.bias 32",
                "transformer.h.1.mlp.c_proj.weight 32 8", "transformer.h.1.mlp.c_proj.bias 8"}));
  EXPECT_EQ(model.layers[3].name, "transformer.head");
  EXPECT_EQ(Listing(model.layers[3]),
            (std::vector<std::string>{"transformer.ln_f.weight 8", "transformer.ln_f.bias 8",
                                      "transformer.wte.weight 11 8"}));
  ModelOptions untied = Tiny("gpt");
  untied.tie_embeddings = false;
  EXPECT_EQ(Built(untied).layers[3].parameters[2].name, "lm_head.weight");
}

TEST(BertSpec, HasTheNamesAndLayoutsOfHuggingFace) {
  const ModelSpec model = Built(Tiny("bert"));
  ASSERT_EQ(model.layers.size(), 4u);
  EXPECT_EQ(Listing(model.layers[0]),
            (std::vector<std::string>{"bert.embeddings.word_embeddings.weight 11 8",
                                      "bert.embeddings.position_embeddings.weight 5 8",
                                      "bert.embeddings.token_type_embeddings.weight 2 8",
                                      "bert.embeddings.LayerNorm.weight 8",
                                      "bert.embeddings.LayerNorm.bias 8"}));
  EXPECT_EQ(Listing(model.layers[1]),
            (std::vector<std::string>{"bert.encoder.layer.0.attention.self.query.weight 8 8",
                                      "bert.encoder.layer.0.attention.self.query.bias 8",
                                      "bert.encoder.layer.0.attention.self.key.weight 8 8",
                                      "bert.encoder.layer.0.attention.self.key.bias 8",
                                      "bert.encoder.layer.0.attention.self.value.weight 8 8",
                                      "bert.encoder.layer.0.attention.self.value.bias 8",
                                      "bert.encoder.layer.0.attention.output.dense.weight 8 8",
                                      "bert.encoder.layer.0.attention.output.dense.bias 8",
                                      "bert.encoder.layer.0.attention.output.LayerNorm.weight 8",
                                      "bert.encoder.layer.0.attention.output.LayerNorm.bias 8",
                                      "bert.encoder.layer.0.intermediate.dense.weight 32 8",
                                      "bert.encoder.layer.0.intermediate.dense.bias 32",
                                      "bert.encoder.layer.0.output.dense.weight 8 32",
                                      "bert.encoder.layer.0.output.dense.bias 8",
                                      "bert.encoder.layer.0.output.LayerNorm.weight 8",
                                      "bert.encoder.layer.0.output.LayerNorm.bias 8"}));
  EXPECT_EQ(
      Listing(model.layers[3]),
      (std::vector<std::string>{
          "cls.predictions.transform.dense.weight 8 8", "cls.predictions.transform.dense.bias 8",
          "cls.predictions.transform.LayerNorm.weight 8",
          "cls.predictions.transform.LayerNorm.bias 8",
          "bert.embeddings.word_embeddings.weight 11 8", "cls.predictions.bias 11"}));
  EXPECT_EQ(model.objective, Objective::kMaskedToken);
}

TEST(GptSpec, StartsResidualProjectionsSmaller) {
  const ModelSpec model = Built(Tiny("gpt"));
  for (const ParameterSpec& parameter : model.layers[1].parameters) {
    SCOPED_TRACE(parameter.name);
    if (absl::EndsWith(parameter.name, "c_proj.weight")) {
      EXPECT_EQ(parameter.initializer, Initializer::kNormal);
      EXPECT_DOUBLE_EQ(parameter.standard_deviation, 0.02 / 2.0);  // sqrt(2 * 2 layers) = 2
    } else if (absl::StrContains(parameter.name, "ln_")) {
      EXPECT_EQ(parameter.initializer, absl::EndsWith(parameter.name, "weight")
                                           ? Initializer::kOnes
                                           : Initializer::kZeros);
    } else if (absl::EndsWith(parameter.name, "bias")) {
      EXPECT_EQ(parameter.initializer, Initializer::kZeros);
    } else {
      EXPECT_EQ(parameter.initializer, Initializer::kNormal);
      EXPECT_DOUBLE_EQ(parameter.standard_deviation, 0.02);
    }
  }
}

TEST(ModelSpec, CountsForwardOperationsByHand) {
  const int64_t s = 5;
  const int64_t h = 8;
  const int64_t v = 11;
  const int64_t block = 24 * s * h * h + 4 * s * s * h;
  const ModelSpec gpt = Built(Tiny("gpt"));
  EXPECT_EQ(gpt.layers[0].forward_flops, s * h);
  EXPECT_EQ(gpt.layers[1].forward_flops, block);
  EXPECT_EQ(gpt.layers[3].forward_flops, 2 * s * h * v);
  const ModelSpec bert = Built(Tiny("bert"));
  EXPECT_EQ(bert.layers[1].forward_flops, block);
  EXPECT_EQ(bert.layers[3].forward_flops, 2 * s * h * h + 2 * s * h * v);
  const ModelSpec mlp = Built(Tiny("mlp"));
  EXPECT_EQ(mlp.layers[1].forward_flops, 2 * s * h * h);
  EXPECT_EQ(mlp.layers[3].forward_flops, 2 * s * h * v);
}

TEST(ModelSpec, EveryKindIsValidAndHasTheBoundariesOfItsSizes) {
  for (const std::string& kind : KnownModelKinds()) {
    SCOPED_TRACE(kind);
    const ModelSpec model = Built(Tiny(kind));
    EXPECT_TRUE(ValidateModelSpec(model).ok()) << ValidateModelSpec(model);
    EXPECT_EQ(model.input, (TensorSpec{DType::kInt64, {5}}));
    EXPECT_EQ(model.target, (TensorSpec{DType::kInt64, {5}}));
    EXPECT_EQ(model.classes, 11);
    EXPECT_FALSE(model.options.activation.empty());
    for (const LayerSpec& layer : model.layers) {
      EXPECT_GT(layer.forward_flops, 0) << layer.name;
      if (&layer == &model.layers.back()) {
        EXPECT_TRUE(layer.outputs.empty());
      } else {
        EXPECT_EQ(layer.outputs, (std::vector<TensorSpec>{{DType::kFloat32, {5, 8}}}));
      }
    }
  }
}

TEST(ModelSpec, EveryKindRefusesSizesBeyond64Bits) {
  for (const std::string& kind : KnownModelKinds()) {
    SCOPED_TRACE(kind);
    ModelOptions options = Tiny(kind);
    options.hidden = 9'000'000'000'000'000'000;
    EXPECT_EQ(
        ErrorOf(options),
        "model.hidden: 9000000000000000000: the size of all layers' weights overflows 64 bits");
    options = Tiny(kind);
    options.vocabulary = 9'000'000'000'000'000'000;
    EXPECT_EQ(
        ErrorOf(options),
        "model.vocabulary: 9000000000000000000: the size of the token embedding overflows 64 bits");
    options = Tiny(kind);
    options.sequence_length = 9'000'000'000'000'000'000;
    EXPECT_EQ(ErrorOf(options),
              "data.sequence_length: 9000000000000000000: the size of all layers' outputs "
              "overflows 64 bits");
    options = Tiny(kind);
    options.layers = 9'000'000'000'000'000'000;
    EXPECT_EQ(ErrorOf(options), "model.layers: 9000000000000000000 is more than 100000 layers");
  }
}

TEST(ModelSpec, LargestAcceptedSizesDoNotOverflowAnySum) {
  // At the limit of each key alone: the largest power of two that is accepted.
  for (int64_t ModelOptions::*key :
       {&ModelOptions::hidden, &ModelOptions::vocabulary, &ModelOptions::sequence_length}) {
    ModelOptions options = Tiny("gpt");
    options.heads = 1;
    int64_t size = int64_t{1} << 62;
    absl::StatusOr<ModelSpec> model = absl::InternalError("not built yet");
    for (; size > 0; size /= 2) {
      options.*key = size;
      model = BuildModelSpec(options);
      if (model.ok()) break;
    }
    ASSERT_TRUE(model.ok());
    double bytes = 0;
    double flops = 0;
    for (const Parameter& parameter : CanonicalParameters(*model)) {
      double elements = 1;
      for (const int64_t extent : parameter.shape) elements *= static_cast<double>(extent);
      bytes += 4 * elements;
    }
    for (const LayerSpec& layer : model->layers) {
      EXPECT_GT(layer.forward_flops, 0);
      flops += static_cast<double>(layer.forward_flops);
    }
    EXPECT_LT(bytes, std::ldexp(1.0, 63));
    EXPECT_LT(flops, std::ldexp(1.0, 63));
  }
}

TEST(ModelSpec, NamesTheKeyThatIsWrong) {
  ModelOptions options = Tiny("gpt");
  options.heads = 3;
  EXPECT_EQ(ErrorOf(options), "model.heads: 3 does not divide model.hidden 8");
  options = Tiny("gpt");
  options.layers = 0;
  EXPECT_EQ(ErrorOf(options), "model.layers: 0 must be positive");
  options = Tiny("gpt");
  options.hidden = -8;
  EXPECT_EQ(ErrorOf(options), "model.hidden: -8 must be positive");
  options = Tiny("bert");
  options.heads = 0;
  EXPECT_EQ(ErrorOf(options), "model.heads: 0 must be positive");
  options = Tiny("mlp");
  options.dropout = 1.0;
  EXPECT_EQ(ErrorOf(options), "model.dropout: 1 must be at least 0 and below 1");
  options.dropout = std::nan("");
  EXPECT_EQ(ErrorOf(options), "model.dropout: nan must be at least 0 and below 1");
  options = Tiny("gpt");
  options.activation = "swish";
  EXPECT_EQ(ErrorOf(options), "model.activation: unknown 'swish'; known: gelu_new, gelu, relu");
}

TEST(ModelSpec, ListsTheKnownKinds) {
  ModelOptions options;
  options.kind = "gtp";
  const absl::Status status = BuildModelSpec(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  for (const std::string& kind : KnownModelKinds()) {
    EXPECT_TRUE(absl::StrContains(status.message(), kind)) << status;
  }
  EXPECT_TRUE(absl::StartsWith(status.message(), "unknown model kind 'gtp'; known: "));
}

TEST(ModelSpec, TakesAnActivationOtherThanItsOwn) {
  ModelOptions options = Tiny("gpt");
  EXPECT_EQ(Built(options).options.activation, "gelu_new");
  options.activation = "relu";
  EXPECT_EQ(Built(options).options.activation, "relu");
  EXPECT_EQ(Built(Tiny("bert")).options.activation, "gelu");
  EXPECT_EQ(Built(Tiny("mlp")).options.activation, "relu");
}

TEST(CanonicalParameters, HaveTiedOnesAtTheirFirstUse) {
  const std::vector<Parameter> parameters = CanonicalParameters(Built(Tiny("gpt")));
  EXPECT_EQ(parameters.front().name, "transformer.wte.weight");
  EXPECT_EQ(parameters.front().uses,
            (std::vector<ParameterUse>{{.layer = 0, .index = 0}, {.layer = 3, .index = 2}}));
  EXPECT_EQ(parameters.back().name, "transformer.ln_f.bias");
  EXPECT_EQ(parameters.size(), 2u + 2 * 12 + 2);
}

LayerSpec UserLayer(std::string name, std::vector<ParameterSpec> parameters) {
  LayerSpec layer;
  layer.name = std::move(name);
  layer.parameters = std::move(parameters);
  layer.outputs = {{DType::kFloat32, {4}}};
  return layer;
}

TEST(ValidateModelSpec, NamesTheLayerThatIsWrong) {
  const auto error_of = [](std::vector<LayerSpec> layers) {
    ModelSpec model;
    model.layers = std::move(layers);
    return std::string(ValidateModelSpec(model).message());
  };
  EXPECT_EQ(error_of({}), "the model has no layers");
  EXPECT_EQ(error_of({UserLayer("a", {{"w", {2, 3}}}), UserLayer("b", {{"v", {2}}})}), "");
  EXPECT_EQ(error_of({UserLayer("a", {}), UserLayer("", {})}), "layer 1 has no name");
  EXPECT_EQ(error_of({UserLayer("a", {}), UserLayer("a", {})}),
            "layer 'a' stands twice in the model; names must be unique");
  EXPECT_EQ(error_of({UserLayer("a", {{"w", {2, 3}}}), UserLayer("b", {{"w", {3, 2}}})}),
            "layer 'b' uses parameter 'w' with shape [3, 2], but layer 'a' declares [2, 3]");
  EXPECT_EQ(error_of({UserLayer("a", {{"w", {2}}, {"w", {2}}})}),
            "layer 'a' has parameter 'w' twice");
  EXPECT_EQ(error_of({UserLayer("a", {{"", {2}}})}), "layer 'a' has a parameter without a name");
  EXPECT_EQ(error_of({UserLayer("a", {{"w", {2, 0}}})}),
            "layer 'a' has parameter 'w' of shape [2, 0]; every extent must be positive");
  EXPECT_EQ(error_of({UserLayer("a", {{"__metadata__", {2}}})}),
            "layer 'a' has a parameter named __metadata__, which files of weights have for "
            "themselves");
  for (const double deviation : {std::nan(""), -1.0, HUGE_VAL}) {
    EXPECT_THAT(
        error_of({UserLayer("a", {{.name = "w", .shape = {2}, .standard_deviation = deviation}})}),
        testing::HasSubstr("layer 'a' has parameter 'w' with a standard deviation of "));
  }
  LayerSpec mute = UserLayer("mute", {});
  mute.outputs.clear();
  EXPECT_EQ(error_of({mute, UserLayer("b", {})}),
            "layer 'mute' declares no outputs, but is not the last layer");
  EXPECT_EQ(error_of({UserLayer("b", {}), mute}), "");
}

}  // namespace
}  // namespace siphon
