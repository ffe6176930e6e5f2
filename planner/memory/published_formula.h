#ifndef SIPHON_PLANNER_MEMORY_PUBLISHED_FORMULA_H_
#define SIPHON_PLANNER_MEMORY_PUBLISHED_FORMULA_H_

#include <optional>
#include <vector>

#include "planner/memory/memory_estimate.h"
#include "planner/model_profile.h"
#include "planner/model_spec.h"

namespace siphon {

// What one layer of a transformer keeps of one microbatch: Korthikanti et al., arXiv:2205.05198,
// formula 2 without tensor parallelism, term by term: s b h (34 + 5 a s / h) bytes a block (s
// sequence, b microbatch, h hidden, a heads), with dropout and without flash attention whatever
// the options say, in 16 bits; twice that in float32. Embeddings and heads of gpt and bert keep
// nothing. Nothing for layers of other models: the formula does not know them.
std::optional<std::vector<SavedTensor>> PublishedActivations(const ModelSpec& model,
                                                             const LayerSpec& layer,
                                                             int64_t microbatch,
                                                             Precision precision);

// Bytes of one parameter: 16 with Adam. Mixed precision: 2 for the weight, 2 for the gradient, 4
// for the master weight and 4 a moment; float32: 4 for each (Rajbhandari et al., arXiv:1910.02054,
// section 3.1).
struct ParameterBytes {
  int64_t weight = 4;
  int64_t gradient = 4;
  int64_t optimizer = 8;
};
ParameterBytes BytesOfParameter(Precision precision, int moments);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_PUBLISHED_FORMULA_H_
