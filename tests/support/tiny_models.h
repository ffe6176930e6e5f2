#ifndef SIPHON_TESTS_SUPPORT_TINY_MODELS_H_
#define SIPHON_TESTS_SUPPORT_TINY_MODELS_H_

#include "planner/model_spec.h"

namespace siphon {

// Models small enough that a training step takes milliseconds, of `blocks` blocks (blocks + 2
// layers).
ModelOptions TinyGpt(int blocks);   // tied embeddings, no dropout
ModelOptions TinyBert(int blocks);  // tied embeddings, no dropout
ModelOptions TinyMlp(int blocks);

ModelOptions WithDropout(ModelOptions options, double probability);
ModelOptions Untied(ModelOptions options);

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_TINY_MODELS_H_
