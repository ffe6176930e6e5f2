// Writes what the reference computes for small models, for tests/python/check_reference.py to
// compare with PyTorch.
//
//   dump_reference FOLDER   for each model FOLDER/<name>.json (sizes, batch, loss, where the
//   tensors lie) and
//                           FOLDER/<name>.bin (initial weights and gradients, fp32, one after
//                           another)

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/reference_trainer.h"
#include "tests/support/tiny_models.h"
#include "tests/support/token_batches.h"

namespace siphon {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kSeed = 11;

std::vector<int64_t> Tokens(const std::vector<MicrobatchData>& microbatches,
                            absl::Span<const std::byte> MicrobatchData::*part) {
  std::vector<int64_t> tokens;
  for (const MicrobatchData& microbatch : microbatches) {
    const absl::Span<const std::byte> bytes = microbatch.*part;
    const size_t before = tokens.size();
    tokens.resize(before + bytes.size() / sizeof(int64_t));
    std::memcpy(tokens.data() + before, bytes.data(), bytes.size());
  }
  return tokens;
}

// Appends the tensors to `file`; returns name -> offset in elements.
Json Append(const reference::NamedValues& tensors, std::ofstream& file) {
  Json offsets = Json::object();
  for (const auto& [name, values] : tensors) {
    offsets[name] = static_cast<int64_t>(file.tellp()) / static_cast<int64_t>(sizeof(float));
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  return offsets;
}

void Dump(const std::string& path, const ModelSpec& model) {
  const TokenBatches batches = MakeTokenBatches(model, {.microbatches = 2, .microbatch = 3}, kSeed);
  const StepInputs& inputs = batches.steps[0];
  reference::Trainer trainer(model, {.seed = kSeed, .optimizer = "sgd"});

  std::ofstream tensors(path + ".bin", std::ios::binary);
  Json json;
  json["weights"] = Append(trainer.Parameters(), tensors);
  const reference::StepResult result = trainer.Step(inputs, 0.0);
  json["gradients"] = Append(trainer.Gradients(), tensors);
  for (const Parameter& parameter : CanonicalParameters(model))
    json["shapes"][parameter.name] = parameter.shape;
  json["kind"] = model.options.kind;
  json["layers"] = model.options.layers;
  json["heads"] = model.options.heads;
  json["tie_embeddings"] = model.options.tie_embeddings;
  json["sequence_length"] = model.options.sequence_length;
  json["input"] = Tokens(inputs.microbatches, &MicrobatchData::input);
  json["target"] = Tokens(inputs.microbatches, &MicrobatchData::target);
  json["loss"] = result.loss;
  std::ofstream(path + ".json") << json.dump(1);
}

int Main(const std::string& folder) {
  const std::vector<std::pair<std::string, ModelOptions>> models = {
      {"gpt", TinyGpt(2)},
      {"gpt_untied", Untied(TinyGpt(2))},
      {"bert", TinyBert(2)},
      {"bert_untied", Untied(TinyBert(2))}};
  for (const auto& [name, options] : models) {
    const auto model = BuildModelSpec(options);
    if (!model.ok()) {
      std::fprintf(stderr, "%s\n", std::string(model.status().message()).c_str());
      return 1;
    }
    Dump(folder + "/" + name, *model);
  }
  return 0;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: dump_reference FOLDER\n");
    return 2;
  }
  try {
    return siphon::Main(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dump_reference: %s\n", error.what());
    return 1;
  }
}
