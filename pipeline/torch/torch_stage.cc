#include "pipeline/torch/torch_stage.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/microbatch_passes.h"
#include "pipeline/torch/optimizers.h"
#include "pipeline/torch/stage_layers.h"
#include "pipeline/torch/stage_parameters.h"
#include "pipeline/torch/tensor_bytes.h"
#include "planner/status.h"

namespace siphon {
namespace {

// One microbatch within one step. Forward moves it from kWaiting to kForwarded (evaluating: kDone),
// Backward to kDone; its input half to kHalfDone, its weight half from there to kDone.
struct MicrobatchState {
  explicit MicrobatchState(MicrobatchPasses made) : passes(std::move(made)) {}

  enum class Phase { kWaiting, kForwarded, kHalfDone, kDone };
  Phase phase = Phase::kWaiting;
  std::vector<at::Tensor> input;            // until Forward takes it over
  std::vector<at::Tensor> output;           // from Forward to Release
  std::vector<at::Tensor> output_gradient;  // until Backward takes it over
  std::vector<at::Tensor> input_gradient;   // from Backward to Release
  MicrobatchPasses passes;
  float loss = 0;
};

class TorchStage final : public StageCompute {
 public:
  TorchStage(const Model& model, const StagePartition& partition, StageId stage, uint64_t seed,
             const OptimizerTraits* optimizer, OptimizerOptions options)
      : layers_(model, partition.stages[stage.value], seed),
        parameters_(model.spec, partition, stage, seed, optimizer, std::move(options)) {}

  absl::Status BeginStep(const StepInputs& inputs) override;
  void Watch(PassWatch* watch) override { watch_ = watch; }
  absl::StatusOr<TensorSpans> Buffers(Boundary boundary, MicrobatchId microbatch) override;
  absl::Status Release(Boundary boundary, MicrobatchId microbatch) override;
  absl::Status Forward(MicrobatchId microbatch) override;
  absl::Status Drop(MicrobatchId microbatch, StageRange layers) override;
  absl::Status Recompute(MicrobatchId microbatch, StageRange layers) override;
  absl::Status Collect(MicrobatchId microbatch, StageRange layers) override;
  absl::StatusOr<TensorSpans> SavedTensors(MicrobatchId microbatch, StageRange layers) override;
  absl::Status FreeSaved(MicrobatchId microbatch, StageRange layers) override;
  absl::StatusOr<TensorSpans> RefillSaved(MicrobatchId microbatch, StageRange layers) override;
  absl::Status Backward(MicrobatchId microbatch) override;
  absl::Status BackwardInput(MicrobatchId microbatch) override;
  absl::Status BackwardWeight(MicrobatchId microbatch) override;
  std::vector<float> Losses() const override;
  absl::StatusOr<std::vector<SharedGradient>> SharedGradients() override;
  absl::Status AddSharedGradients() override;
  absl::StatusOr<std::vector<float>> GradientNorms() override;
  absl::Status Step(const UpdateSettings& settings) override;
  std::vector<StateTensor> State() override { return parameters_.State(); }
  int LiveMicrobatches() const override { return live_; }

 private:
  using Phase = MicrobatchState::Phase;
  using Half = MicrobatchPasses::Half;

  absl::StatusOr<MicrobatchState*> Find(MicrobatchId microbatch);
  absl::StatusOr<std::vector<at::Tensor>*> Place(Boundary boundary, MicrobatchId microbatch);
  absl::StatusOr<std::vector<at::Tensor>> TakeInput(MicrobatchId microbatch,
                                                    MicrobatchState& state);
  // Whether layers can be told before their forward what becomes of what they save.
  absl::StatusOr<MicrobatchState*> FindWaiting(MicrobatchId microbatch, absl::string_view what);
  // Between forward and backward.
  absl::StatusOr<MicrobatchState*> FindForwarded(MicrobatchId microbatch, absl::string_view what);
  absl::Status RunBackward(MicrobatchId microbatch, Half half);
  absl::Status CheckGradientsComplete() const;

  StageLayers layers_;
  StageParameters parameters_;
  std::vector<MicrobatchState> states_;
  int live_ = 0;
  PassWatch* watch_ = nullptr;
};

absl::Status TorchStage::BeginStep(const StepInputs& inputs) {
  if (live_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a step cannot begin while ", live_,
                     " microbatches of the one before await their backward pass"));
  }
  SIPHON_RETURN_IF_ERROR(layers_.BeginStep(inputs));
  return CallTorch("beginning a step", [&] {
    states_.clear();
    states_.reserve(layers_.microbatches());
    for (int microbatch = 0; microbatch < layers_.microbatches(); ++microbatch) {
      states_.emplace_back(MicrobatchPasses(MicrobatchId(microbatch), &layers_, &parameters_));
    }
    if (layers_.IsTraining()) parameters_.ClearGradients();
  });
}

absl::StatusOr<MicrobatchState*> TorchStage::Find(MicrobatchId microbatch) {
  if (microbatch.value < 0 || microbatch.value >= static_cast<int>(states_.size())) {
    return absl::FailedPreconditionError(absl::StrCat("there is no microbatch ", microbatch.value,
                                                      " in this step of ", states_.size()));
  }
  return &states_[microbatch.value];
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
  if (towards_input && layers_.IsFirst()) return refuse("does not exist: this is the first stage");
  if (!towards_input && layers_.IsLast()) return refuse("does not exist: this is the last stage");
  if (is_gradient && !layers_.IsTraining()) return refuse("does not exist in an evaluation");
  switch (boundary) {
    case Boundary::kInput:
      if (state->phase != Phase::kWaiting) return refuse("was taken over by its forward pass");
      return &state->input;
    case Boundary::kOutputGradient:
      if (state->phase > Phase::kForwarded) return refuse("was taken over by its backward pass");
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

absl::StatusOr<TensorSpans> TorchStage::Buffers(Boundary boundary, MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(std::vector<at::Tensor> * tensors, Place(boundary, microbatch));
  if (tensors->empty()) {  // only what is received: Place refuses the others
    const int layer = boundary == Boundary::kInput ? layers_.begin() - 1 : layers_.end() - 1;
    SIPHON_RETURN_IF_ERROR(CallTorch(absl::StrCat("memory for the ", BoundaryName(boundary),
                                                  " of microbatch ", microbatch.value),
                                     [&] { *tensors = layers_.EmptyOutputs(layer, microbatch); }));
  }
  const bool is_gradient =
      boundary == Boundary::kOutputGradient || boundary == Boundary::kInputGradient;
  TensorSpans spans;
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
  return CallTorch("freeing saved tensors",
                   [&] { states_[microbatch.value].passes.collected().RetryFree(); });
}

absl::StatusOr<std::vector<at::Tensor>> TorchStage::TakeInput(MicrobatchId microbatch,
                                                              MicrobatchState& state) {
  if (layers_.IsFirst()) return std::vector<at::Tensor>{layers_.Data(microbatch)};
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
  SIPHON_ASSIGN_OR_RETURN(activations, state->passes.Forward(std::move(activations), watch_));
  if (layers_.IsLast()) {
    state->loss = *static_cast<const float*>(activations[0].const_data_ptr());
  } else {
    state->output = std::move(activations);
  }
  state->phase = layers_.IsTraining() ? Phase::kForwarded : Phase::kDone;
  if (layers_.IsTraining()) ++live_;
  return absl::OkStatus();
}

absl::StatusOr<MicrobatchState*> TorchStage::FindWaiting(MicrobatchId microbatch,
                                                         absl::string_view what) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  if (state->phase == Phase::kWaiting && layers_.IsTraining()) return state;
  return absl::FailedPreconditionError(
      absl::StrCat("activations of microbatch ", microbatch.value, " are ", what,
                   layers_.IsTraining() ? " before its forward pass" : " in training only"));
}

absl::StatusOr<MicrobatchState*> TorchStage::FindForwarded(MicrobatchId microbatch,
                                                           absl::string_view what) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  if (state->phase == Phase::kForwarded) return state;
  return absl::FailedPreconditionError(absl::StrCat("activations of microbatch ", microbatch.value,
                                                    " are ", what,
                                                    " between its forward and its backward pass"));
}

absl::Status TorchStage::Drop(MicrobatchId microbatch, StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, FindWaiting(microbatch, "dropped"));
  return state->passes.Drop(layers);
}

absl::Status TorchStage::Recompute(MicrobatchId microbatch, StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, FindForwarded(microbatch, "computed again"));
  return state->passes.Recompute(layers);
}

absl::Status TorchStage::Collect(MicrobatchId microbatch, StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, FindWaiting(microbatch, "collected"));
  return state->passes.Collect(layers);
}

// In the middle of a pass too, so whatever its phase.
absl::StatusOr<TensorSpans> TorchStage::SavedTensors(MicrobatchId microbatch, StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  return state->passes.collected().Memory(layers);
}

absl::Status TorchStage::FreeSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, FindForwarded(microbatch, "freed"));
  return CallTorch("freeing saved tensors", [&] { return state->passes.collected().Free(layers); });
}

absl::StatusOr<TensorSpans> TorchStage::RefillSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, FindForwarded(microbatch, "brought back"));
  return CallTorch("memory for saved tensors",
                   [&] { return state->passes.collected().Refill(layers); });
}

absl::Status TorchStage::Backward(MicrobatchId microbatch) {
  return RunBackward(microbatch, Half::kBoth);
}

absl::Status TorchStage::BackwardInput(MicrobatchId microbatch) {
  return RunBackward(microbatch, Half::kInput);
}

absl::Status TorchStage::RunBackward(MicrobatchId microbatch, Half half) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  if (state->phase != Phase::kForwarded) {
    return absl::FailedPreconditionError(absl::StrCat(
        "backward of microbatch ", microbatch.value,
        state->phase == Phase::kWaiting ? " before its forward pass" : ", which has none left"));
  }
  if (!layers_.IsLast() && state->output_gradient.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("backward of microbatch ", microbatch.value,
                     " before the gradient of its output was received"));
  }
  std::vector<at::Tensor> gradients = std::exchange(state->output_gradient, {});
  SIPHON_ASSIGN_OR_RETURN(gradients, state->passes.Backward(std::move(gradients), half, watch_));
  if (!layers_.IsFirst()) state->input_gradient = std::move(gradients);
  state->phase = half == Half::kInput ? Phase::kHalfDone : Phase::kDone;
  if (half == Half::kBoth) --live_;
  return absl::OkStatus();
}

absl::Status TorchStage::BackwardWeight(MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(MicrobatchState * state, Find(microbatch));
  if (state->phase != Phase::kHalfDone) {
    return absl::FailedPreconditionError(absl::StrCat(
        "weight gradients of microbatch ", microbatch.value,
        state->phase == Phase::kDone ? ", which has none left" : " before those of its input"));
  }
  SIPHON_RETURN_IF_ERROR(state->passes.BackwardWeight());
  state->phase = Phase::kDone;
  --live_;
  return absl::OkStatus();
}

std::vector<float> TorchStage::Losses() const {
  std::vector<float> losses;
  if (!layers_.IsLast()) return losses;
  for (const MicrobatchState& state : states_) {
    if (state.phase != Phase::kWaiting) losses.push_back(state.loss);
  }
  return losses;
}

absl::Status TorchStage::CheckGradientsComplete() const {
  size_t done = 0;
  for (const MicrobatchState& state : states_) done += state.phase == Phase::kDone;
  if (layers_.IsTraining() && done == states_.size() && done > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      layers_.IsTraining() ? absl::StrCat("the gradients are not complete: ", done, " of ",
                                          states_.size(), " microbatches had their backward pass")
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
