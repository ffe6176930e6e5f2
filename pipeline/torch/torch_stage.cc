#include "pipeline/torch/torch_stage.h"

#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/layer_graph.h"
#include "pipeline/torch/layers.h"
#include "pipeline/torch/optimizers.h"
#include "pipeline/torch/stage_parameters.h"
#include "pipeline/torch/tensor_bytes.h"
#include "planner/status.h"

namespace siphon {
namespace {

// One microbatch within one step. Forward moves it from kWaiting to kForwarded (evaluating: kDone),
// Backward to kDone.
struct MicrobatchState {
  enum class Phase { kWaiting, kForwarded, kDone };
  Phase phase = Phase::kWaiting;
  std::vector<at::Tensor> input;            // until Forward takes it over
  std::vector<at::Tensor> output;           // from Forward to Release
  std::vector<at::Tensor> output_gradient;  // until Backward takes it over
  std::vector<at::Tensor> input_gradient;   // from Backward to Release
  std::vector<LayerGraph> graphs;  // of the stage's layers, from Forward until each one's backward
  float loss = 0;
};

class TorchStage final : public StageCompute {
 public:
  TorchStage(const Model& model, const StagePartition& partition, StageId stage, uint64_t seed,
             const OptimizerTraits* optimizer, OptimizerOptions options)
      : model_(model),
        range_(partition.stages[stage.value]),
        seed_(seed),
        parameters_(model.spec, partition, stage, seed, optimizer, std::move(options)) {}

  absl::Status BeginStep(const StepInputs& inputs) override;
  absl::StatusOr<BoundarySpans> Buffers(Boundary boundary, MicrobatchId microbatch) override;
  absl::Status Release(Boundary boundary, MicrobatchId microbatch) override;
  absl::Status Forward(MicrobatchId microbatch) override;
  absl::Status Backward(MicrobatchId microbatch) override;
  std::vector<float> Losses() const override;
  absl::StatusOr<std::vector<SharedGradient>> SharedGradients() override;
  absl::Status AddSharedGradients() override;
  absl::StatusOr<std::vector<float>> GradientNorms() override;
  absl::Status Step(const UpdateSettings& settings) override;
  std::vector<StateTensor> State() override { return parameters_.State(); }
  int LiveMicrobatches() const override { return live_; }

 private:
  using Phase = MicrobatchState::Phase;

  bool IsFirst() const { return range_.begin == 0; }
  bool IsLast() const { return range_.end == static_cast<int>(model_.spec.layers.size()); }
  bool IsTraining() const { return inputs_.mode == StepMode::kTrain; }
  const LayerSpec& Layer(int layer) const { return model_.spec.layers[layer]; }

  absl::StatusOr<MicrobatchState*> Find(MicrobatchId microbatch);
  absl::Status CheckData(int microbatch) const;
  std::vector<at::Tensor> EmptyBoundary(const LayerSpec& layer, MicrobatchId microbatch) const;
  absl::StatusOr<std::vector<at::Tensor>*> Place(Boundary boundary, MicrobatchId microbatch);
  absl::StatusOr<std::vector<at::Tensor>> TakeInput(MicrobatchId microbatch,
                                                    MicrobatchState& state);
  absl::Status ForwardLayer(int layer, MicrobatchId microbatch, MicrobatchState& state,
                            std::vector<at::Tensor>& activations);
  std::vector<at::Tensor> CallLayer(int layer, MicrobatchId microbatch,
                                    const std::vector<at::Tensor>& parameters,
                                    const std::vector<at::Tensor>& inputs) const;
  at::Tensor Loss(const std::vector<at::Tensor>& outputs, MicrobatchId microbatch) const;
  absl::Status CheckOutputs(int layer, int64_t samples,
                            const std::vector<at::Tensor>& outputs) const;
  absl::Status CheckGradientsComplete() const;

  const Model& model_;
  const StageRange range_;
  const uint64_t seed_;
  StageParameters parameters_;
  StepInputs inputs_;
  std::vector<MicrobatchState> states_;
  int live_ = 0;
};

absl::Status TorchStage::BeginStep(const StepInputs& inputs) {
  if (live_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a step cannot begin while ", live_,
                     " microbatches of the one before await their backward pass"));
  }
  if (inputs.target_count <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("the global batch has ", inputs.target_count,
                                                   " targets; it needs at least one"));
  }
  inputs_ = inputs;
  for (size_t microbatch = 0; microbatch < inputs.microbatches.size(); ++microbatch) {
    SIPHON_RETURN_IF_ERROR(CheckData(static_cast<int>(microbatch)));
  }
  return CallTorch("beginning a step", [&] {
    states_.clear();
    states_.resize(inputs_.microbatches.size());
    if (IsTraining()) parameters_.ClearGradients();
  });
}

// The stages at the ends read the data; all others take its number of samples only.
absl::Status TorchStage::CheckData(int microbatch) const {
  const MicrobatchData& data = inputs_.microbatches[microbatch];
  const auto check = [&](absl::string_view what, const TensorSpec& spec, const TensorSpec& sample,
                         absl::Span<const std::byte> bytes, bool read) -> absl::Status {
    const int64_t samples = spec.shape.empty() ? 0 : spec.shape[0];
    if (samples <= 0 || spec != Batched(sample, samples)) {
      return absl::InvalidArgumentError(absl::StrCat("microbatch ", microbatch, ": the ", what,
                                                     " is ", ToString(spec), "; the model takes ",
                                                     ToString(sample), " a sample"));
    }
    if (!read) return absl::OkStatus();
    const int64_t wanted = SizeOf(spec).value;
    if (static_cast<int64_t>(bytes.size()) != wanted || !IsAligned(bytes.data())) {
      return absl::InvalidArgumentError(
          absl::StrCat("microbatch ", microbatch, ": the ", what, " has ", bytes.size(),
                       " bytes at address modulo ", kTensorAlignment, " = ",
                       reinterpret_cast<uintptr_t>(bytes.data()) % kTensorAlignment,
                       "; it should have ", wanted, " bytes at 0"));
    }
    return absl::OkStatus();
  };
  SIPHON_RETURN_IF_ERROR(check("input", data.input_spec, model_.spec.input, data.input, IsFirst()));
  SIPHON_RETURN_IF_ERROR(
      check("target", data.target_spec, model_.spec.target, data.target, IsLast()));
  if (data.input_spec.shape[0] != data.target_spec.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat("microbatch ", microbatch, ": ",
                                                   data.input_spec.shape[0], " inputs and ",
                                                   data.target_spec.shape[0], " targets"));
  }
  return absl::OkStatus();
}

absl::StatusOr<MicrobatchState*> TorchStage::Find(MicrobatchId microbatch) {
  if (microbatch.value < 0 || microbatch.value >= static_cast<int>(states_.size())) {
    return absl::FailedPreconditionError(absl::StrCat("there is no microbatch ", microbatch.value,
                                                      " in this step of ", states_.size()));
  }
  return &states_[microbatch.value];
}

std::vector<at::Tensor> TorchStage::EmptyBoundary(const LayerSpec& layer,
                                                  MicrobatchId microbatch) const {
  const int64_t samples = inputs_.microbatches[microbatch.value].input_spec.shape[0];
  std::vector<at::Tensor> tensors;
  for (const TensorSpec& sample : layer.outputs) {
    tensors.push_back(EmptyTensor(Batched(sample, samples)));
  }
  return tensors;
}

// Where the tensors of a boundary are kept, if the stage has this boundary and it may exist now.
absl::StatusOr<std::vector<at::Tensor>*> TorchStage::Place(Boundary boundary,
                                                           MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  const bool towards_input = boundary == Boundary::kInput || boundary == Boundary::kInputGradient;
  const bool is_gradient =
      boundary == Boundary::kOutputGradient || boundary == Boundary::kInputGradient;
  const auto refuse = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ", BoundaryName(boundary), " of microbatch ", microbatch.value, " ", why));
  };
  if (towards_input && IsFirst()) return refuse("does not exist: this is the first stage");
  if (!towards_input && IsLast()) return refuse("does not exist: this is the last stage");
  if (is_gradient && !IsTraining()) return refuse("does not exist in an evaluation");
  switch (boundary) {
    case Boundary::kInput:
      if (state->phase != Phase::kWaiting) return refuse("was taken over by its forward pass");
      return &state->input;
    case Boundary::kOutputGradient:
      if (state->phase == Phase::kDone) return refuse("was taken over by its backward pass");
      return &state->output_gradient;
    case Boundary::kOutput:
      if (state->output.empty()) return refuse("is not there: not made yet, or released");
      return &state->output;
    case Boundary::kInputGradient:
      if (state->input_gradient.empty()) return refuse("is not there: not made yet, or released");
      return &state->input_gradient;
  }
  return refuse("is unknown");
}

absl::StatusOr<BoundarySpans> TorchStage::Buffers(Boundary boundary, MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(std::vector<at::Tensor> * tensors, Place(boundary, microbatch));
  if (tensors->empty()) {  // only what is received: Place refuses the others
    const int layer = boundary == Boundary::kInput ? range_.begin - 1 : range_.end - 1;
    SIPHON_RETURN_IF_ERROR(CallTorch(absl::StrCat("memory for the ", BoundaryName(boundary),
                                                  " of microbatch ", microbatch.value),
                                     [&] { *tensors = EmptyBoundary(Layer(layer), microbatch); }));
  }
  const bool is_gradient =
      boundary == Boundary::kOutputGradient || boundary == Boundary::kInputGradient;
  BoundarySpans spans;
  for (const at::Tensor& tensor : *tensors) {
    // An integer tensor has no gradient: its span is empty, on both sides.
    const bool nothing = is_gradient && !at::isFloatingType(tensor.scalar_type());
    spans.push_back(nothing ? absl::Span<std::byte>() : BytesOf(tensor));
  }
  return spans;
}

absl::Status TorchStage::Release(Boundary boundary, MicrobatchId microbatch) {
  if (boundary == Boundary::kInput || boundary == Boundary::kOutputGradient) {
    return absl::FailedPreconditionError(absl::StrCat("the ", BoundaryName(boundary),
                                                      " of microbatch ", microbatch.value,
                                                      " is not released: its pass takes it over"));
  }
  SIPHON_ASSIGN_OR_RETURN(std::vector<at::Tensor> * tensors, Place(boundary, microbatch));
  tensors->clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> TorchStage::TakeInput(MicrobatchId microbatch,
                                                              MicrobatchState& state) {
  if (IsFirst()) {
    const MicrobatchData& data = inputs_.microbatches[microbatch.value];
    return std::vector<at::Tensor>{TensorOver(data.input_spec, data.input)};
  }
  if (state.input.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("forward of microbatch ", microbatch.value, " before its input was received"));
  }
  return std::exchange(state.input, {});
}

absl::Status TorchStage::Forward(MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  if (state->phase != Phase::kWaiting) {
    return absl::FailedPreconditionError(
        absl::StrCat("a second forward of microbatch ", microbatch.value, " in one step"));
  }
  std::vector<at::Tensor> activations;
  SIPHON_RETURN_IF_ERROR(CallTorch("reading the input", [&]() -> absl::Status {
    SIPHON_ASSIGN_OR_RETURN(activations, TakeInput(microbatch, *state));
    return absl::OkStatus();
  }));
  for (int layer = range_.begin; layer < range_.end; ++layer) {
    SIPHON_RETURN_IF_ERROR(
        Annotate(ForwardLayer(layer, microbatch, *state, activations),
                 absl::StrCat("layer ", Layer(layer).name, ", microbatch ", microbatch.value)));
  }
  if (IsLast()) {
    state->loss = *static_cast<const float*>(activations[0].const_data_ptr());
  } else {
    state->output = std::move(activations);
  }
  state->phase = IsTraining() ? Phase::kForwarded : Phase::kDone;
  if (IsTraining()) ++live_;
  return absl::OkStatus();
}

// Turns `activations` from the layer's inputs into its outputs; for the last layer, into the loss.
absl::Status TorchStage::ForwardLayer(int layer, MicrobatchId microbatch, MicrobatchState& state,
                                      std::vector<at::Tensor>& activations) {
  const LayerPass::Function function = [&](const std::vector<at::Tensor>& parameters,
                                           const std::vector<at::Tensor>& inputs) {
    return CallLayer(layer, microbatch, parameters, inputs);
  };
  const std::vector<at::Tensor>& parameters = parameters_.OfLayer(layer);
  const int64_t samples = inputs_.microbatches[microbatch.value].input_spec.shape[0];
  LayerPass pass;
  SIPHON_RETURN_IF_ERROR(CallTorch("forward", [&] {
    // The data has no use for a gradient, whatever its type.
    const auto wanted =
        layer == 0 ? LayerPass::InputGradients::kUnwanted : LayerPass::InputGradients::kWanted;
    pass = IsTraining() ? LayerPass::Train(function, parameters, activations, wanted)
                        : LayerPass::Evaluate(function, parameters, activations);
  }));
  if (layer + 1 < static_cast<int>(model_.spec.layers.size())) {
    SIPHON_RETURN_IF_ERROR(CheckOutputs(layer, samples, pass.outputs));
  }
  activations = std::move(pass.outputs);
  if (IsTraining()) state.graphs.push_back(std::move(pass.graph));
  return absl::OkStatus();
}

std::vector<at::Tensor> TorchStage::CallLayer(int layer, MicrobatchId microbatch,
                                              const std::vector<at::Tensor>& parameters,
                                              const std::vector<at::Tensor>& inputs) const {
  const LayerContext::Position position = {
      .seed = seed_, .step = inputs_.step, .microbatch = microbatch.value, .layer = layer};
  LayerContext context(&parameters, position, IsTraining());
  std::vector<at::Tensor> outputs = model_.forward[layer](context, inputs);
  const bool is_last = layer + 1 == static_cast<int>(model_.spec.layers.size());
  if (!is_last) return outputs;
  return {Loss(outputs, microbatch)};
}

at::Tensor TorchStage::Loss(const std::vector<at::Tensor>& outputs, MicrobatchId microbatch) const {
  const MicrobatchData& data = inputs_.microbatches[microbatch.value];
  const int64_t classes = model_.spec.classes;
  const int64_t targets = ElementCount(data.target_spec);
  TORCH_CHECK(outputs.size() == 1, "the last layer returned ", outputs.size(),
              " tensors; it should return the logits alone");
  const at::Tensor& logits = outputs[0];
  TORCH_CHECK(logits.defined() && logits.scalar_type() == at::kFloat && logits.dim() > 0 &&
                  logits.size(-1) == classes && logits.numel() == targets * classes,
              "the last layer produced ", DescribeTensor(logits), "; the logits of ", targets,
              " targets in ", classes, " classes should be F32[..., ", classes, "] of ",
              targets * classes, " elements");
  const at::Tensor target = TensorOver(data.target_spec, data.target);
  return at::cross_entropy_loss(logits.reshape({-1, classes}), target.reshape({-1}), {},
                                at::Reduction::Sum, kIgnoredTarget, /*label_smoothing=*/0.0)
      .div(inputs_.target_count);
}

absl::Status TorchStage::CheckOutputs(int layer, int64_t samples,
                                      const std::vector<at::Tensor>& outputs) const {
  const std::vector<TensorSpec>& declared = Layer(layer).outputs;
  if (outputs.size() != declared.size()) {
    return absl::InvalidArgumentError(absl::StrCat("layer ", Layer(layer).name, " declared ",
                                                   declared.size(), " outputs and produced ",
                                                   outputs.size()));
  }
  for (size_t output = 0; output < outputs.size(); ++output) {
    if (Matches(outputs[output], Batched(declared[output], samples))) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "layer ", Layer(layer).name, " declared ", ToString(declared[output]),
        " a sample and produced ", DescribeTensor(outputs[output]), " for ", samples, " samples"));
  }
  return absl::OkStatus();
}

absl::Status TorchStage::Backward(MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  if (state->phase != Phase::kForwarded) {
    return absl::FailedPreconditionError(absl::StrCat(
        "backward of microbatch ", microbatch.value,
        state->phase == Phase::kWaiting ? " before its forward pass" : ", which has none left"));
  }
  if (!IsLast() && state->output_gradient.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("backward of microbatch ", microbatch.value,
                     " before the gradient of its output was received"));
  }
  std::vector<at::Tensor> gradients = std::exchange(state->output_gradient, {});
  for (int layer = range_.end - 1; layer >= range_.begin; --layer) {
    SIPHON_RETURN_IF_ERROR(
        Annotate(CallTorch("backward",
                           [&] {
                             if (layer + 1 == static_cast<int>(model_.spec.layers.size())) {
                               gradients = {at::ones({}, at::kFloat)};
                             }
                             LayerGraph graph = std::move(state->graphs.back());
                             state->graphs.pop_back();
                             LayerGraph::Gradients found = std::move(graph).Backward(gradients);
                             gradients = std::move(found.inputs);
                             parameters_.Accumulate(layer, found.parameters);
                           }),
                 absl::StrCat("layer ", Layer(layer).name, ", microbatch ", microbatch.value)));
  }
  if (!IsFirst()) state->input_gradient = std::move(gradients);
  state->phase = Phase::kDone;
  --live_;
  return absl::OkStatus();
}

std::vector<float> TorchStage::Losses() const {
  std::vector<float> losses;
  if (!IsLast()) return losses;
  for (const MicrobatchState& state : states_) {
    if (state.phase != Phase::kWaiting) losses.push_back(state.loss);
  }
  return losses;
}

absl::Status TorchStage::CheckGradientsComplete() const {
  size_t done = 0;
  for (const MicrobatchState& state : states_) done += state.phase == Phase::kDone;
  if (IsTraining() && done == states_.size() && done > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      IsTraining() ? absl::StrCat("the gradients are not complete: ", done, " of ", states_.size(),
                                  " microbatches had their backward pass")
                   : "an evaluation has no gradients");
}

absl::StatusOr<std::vector<SharedGradient>> TorchStage::SharedGradients() {
  SIPHON_RETURN_IF_ERROR(CheckGradientsComplete());
  return CallTorch("memory for shared gradients", [&] { return parameters_.SharedGradients(); });
}

absl::Status TorchStage::AddSharedGradients() {
  SIPHON_RETURN_IF_ERROR(CheckGradientsComplete());
  return CallTorch("adding shared gradients", [&] { return parameters_.AddSharedGradients(); });
}

absl::StatusOr<std::vector<float>> TorchStage::GradientNorms() {
  SIPHON_RETURN_IF_ERROR(CheckGradientsComplete());
  return CallTorch("norms of the gradients", [&] { return parameters_.GradientNorms(); });
}

absl::Status TorchStage::Step(const UpdateSettings& settings) {
  SIPHON_RETURN_IF_ERROR(CheckGradientsComplete());
  return CallTorch("optimizer step", [&] { return parameters_.Update(settings); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageCompute>> MakeTorchStage(const Model& model,
                                                             const StagePartition& partition,
                                                             StageId stage, uint64_t seed,
                                                             const OptimizerOptions& optimizer) {
  SIPHON_RETURN_IF_ERROR(ValidateModel(model));
  if (stage.value < 0 || stage.value >= static_cast<int>(partition.stages.size())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no stage ", stage.value,
                                                   " in a partition of ", partition.stages.size()));
  }
  const StageRange range = partition.stages[stage.value];
  const int layers = static_cast<int>(model.spec.layers.size());
  if (range.begin < 0 || range.begin >= range.end || range.end > layers) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage.value, " has layers [",
                                                   range.begin, ", ", range.end, ") of a model of ",
                                                   layers));
  }
  SIPHON_ASSIGN_OR_RETURN(const OptimizerTraits* traits, FindOptimizer(optimizer.name));
  return CallTorch(absl::StrCat("memory for the parameters of stage ", stage.value),
                   [&]() -> std::unique_ptr<StageCompute> {
                     return std::make_unique<TorchStage>(model, partition, stage, seed, traits,
                                                         optimizer);
                   });
}

void SetTorchThreads(int threads) {
  // LibTorch guards neither call, and workers of one process start together.
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static const bool interop_set = [] {
    at::set_num_interop_threads(1);
    return true;
  }();
  static_cast<void>(interop_set);
  // A thread takes over the process's last setting at its first parallel operator: do that now, not
  // after ours.
  static_cast<void>(at::get_num_threads());
  at::set_num_threads(threads);
}

}  // namespace siphon
