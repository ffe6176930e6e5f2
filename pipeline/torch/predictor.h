#ifndef SIPHON_PIPELINE_TORCH_PREDICTOR_H_
#define SIPHON_PIPELINE_TORCH_PREDICTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/layers.h"

namespace siphon {

// A whole language model on one worker, to continue a text with. No gradients, no dropout.
//
// Thread-safety: one thread.
class Predictor {
 public:
  // Parameters are zeros until State() was filled.
  // Errors: InvalidArgument if the model does not predict the next token; ResourceExhausted when
  // memory is full.
  static absl::StatusOr<std::unique_ptr<Predictor>> Make(const Model& model);

  // Live views of the parameters, in canonical order; written to when a checkpoint is loaded.
  std::vector<StateTensor> State();

  // The logits of the token after `tokens`, one for each of the model's classes.
  // Errors: InvalidArgument for no tokens, more than the model's sequence length, or ids beyond its
  // vocabulary.
  absl::StatusOr<std::vector<float>> NextTokenLogits(absl::Span<const int64_t> tokens);

 private:
  struct Named {
    std::string name;
    TensorSpec spec;
    at::Tensor value;
  };

  explicit Predictor(const Model& model);
  std::vector<float> Predict(absl::Span<const int64_t> tokens) const;

  Model model_;
  std::vector<Named> parameters_;                  // canonical order
  std::vector<std::vector<at::Tensor>> of_layer_;  // [layer][index]
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_PREDICTOR_H_
