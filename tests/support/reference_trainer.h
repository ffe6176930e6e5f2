#ifndef SIPHON_TESTS_SUPPORT_REFERENCE_TRAINER_H_
#define SIPHON_TESTS_SUPPORT_REFERENCE_TRAINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stage_compute.h"
#include "pipeline/torch/compute_device.h"
#include "planner/model_spec.h"

namespace siphon::reference {

// For each layer of the model the microbatches in the order in which their gradients are added up.
using AccumulationOrders = std::vector<std::vector<int>>;

struct Settings {
  uint64_t seed = 1;
  std::string optimizer = "adamw";  // adamw, adam, sgd
  double weight_decay = 0;          // on matrices only
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0;   // sgd
  double clip_norm = 0;  // 0: no clipping
  int threads = 1;
  ComputeDevice device;  // the data, and values that training starts with, come from the CPU
  // What matrices, activations and their gradients are in; sums, moments and what is updated are
  // float32 always. kFloat32, kBFloat16 or kFloat16.
  DType computed = DType::kFloat32;
  bool rounds_vectors = false;  // as matrices, instead of float32: workers on CUDA devices do
  // Gradients are taken of the loss times this, and divided by it at the end of the step. Where the
  // norm of all of them is no number, nothing is updated, and the scale is half as large from then
  // on. 0: no scale, and every step is made.
  double loss_scale = 0;
  AccumulationOrders accumulation;  // empty: ascending in every layer
};

struct StepResult {
  double loss = 0;  // of the global batch
  std::vector<float> microbatch_losses;
  double gradient_norm = 0;  // before clipping
  float clip_factor = 1;
  bool skipped = false;   // for gradients that are no numbers
  double loss_scale = 1;  // of this step
};

// A model's tensors by parameter name, contiguous.
using NamedValues = std::map<std::string, std::vector<float>>;

// What a pipeline is compared with: the same training in one process and one loop, with autograd
// over the whole model, each order of summation spelled out. Shares with the pipeline only initial
// weights, batches and the key-to-mask function.
//
// Thread-safety: one thread. LibTorch's errors are thrown as they come.
class Trainer {
 public:
  Trainer(const ModelSpec& model, const Settings& settings);
  ~Trainer();

  // One step; `inputs.step` is part of every dropout key.
  StepResult Step(const StepInputs& inputs, double learning_rate);
  // The losses of the microbatches without dropout and without a step.
  std::vector<float> Evaluate(const StepInputs& inputs);

  NamedValues Parameters() const;
  // Adam: both moments; sgd with momentum: the first; otherwise empty.
  NamedValues FirstMoments() const;
  NamedValues SecondMoments() const;
  // Of the last step, summed over uses and microbatches, after clipping.
  NamedValues Gradients() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace siphon::reference

#endif  // SIPHON_TESTS_SUPPORT_REFERENCE_TRAINER_H_
