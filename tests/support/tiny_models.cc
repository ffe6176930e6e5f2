#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

// Sizes differ from each other, so that a mixed-up dimension shows.
ModelOptions Tiny(const char* kind, int blocks) {
  return {.kind = kind,
          .layers = blocks,
          .hidden = 24,
          .heads = 3,
          .vocabulary = 50,
          .sequence_length = 12,
          .dropout = 0.0,
          .tie_embeddings = true};
}

}  // namespace

ModelOptions TinyGpt(int blocks) { return Tiny("gpt", blocks); }
ModelOptions TinyBert(int blocks) { return Tiny("bert", blocks); }
ModelOptions TinyMlp(int blocks) { return Tiny("mlp", blocks); }

ModelOptions WithDropout(ModelOptions options, double probability) {
  options.dropout = probability;
  return options;
}

ModelOptions Untied(ModelOptions options) {
  options.tie_embeddings = false;
  return options;
}

}  // namespace siphon
