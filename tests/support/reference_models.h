#ifndef SIPHON_TESTS_SUPPORT_REFERENCE_MODELS_H_
#define SIPHON_TESTS_SUPPORT_REFERENCE_MODELS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/model_spec.h"

namespace siphon::reference {

// Hands out parameters as autograd leaves: matrices rounded to `computed`, vectors as they are, or
// rounded, too.
// Each use gets a leaf of its own, so that a tied parameter has one gradient for each of its uses;
// `uses` remembers them in the order of the forward pass, which is layer order.
class Leaves {
 public:
  explicit Leaves(const std::map<std::string, at::Tensor>& parameters,
                  at::ScalarType computed = at::kFloat, bool rounds_vectors = false)
      : parameters_(parameters), computed_(computed), rounds_vectors_(rounds_vectors) {}
  at::Tensor operator()(const std::string& name);

  std::vector<std::pair<std::string, at::Tensor>> uses;

 private:
  const std::map<std::string, at::Tensor>& parameters_;
  const at::ScalarType computed_;
  const bool rounds_vectors_;
};

// Where in the training run a forward pass stands: all that its dropout masks depend on.
struct Draws {
  uint64_t seed = 0;
  int64_t step = 0;
  int microbatch = 0;
  double probability = 0;  // 0: no dropout, as in evaluation
};

// The logits, [samples, sequence, vocabulary], of the whole model on one microbatch of tokens,
// [samples, sequence]. kinds: gpt, bert, mlp. Throws std::invalid_argument for others.
at::Tensor Logits(const ModelOptions& options, Leaves& parameter, const at::Tensor& tokens,
                  const Draws& draws);

}  // namespace siphon::reference

#endif  // SIPHON_TESTS_SUPPORT_REFERENCE_MODELS_H_
