#include "pipeline/torch/torch_stage.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/stage_order.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/graphs/saved_tensors.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "pipeline/torch/microbatch_passes.h"
#include "pipeline/torch/parameters/optimizers.h"
#include "pipeline/torch/parameters/stage_parameters.h"
#include "pipeline/torch/stage_layers.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A tensor over bytes of the device's memory, or the host's.
at::Tensor Over(absl::Span<const std::byte> bytes, at::Device device) {
  return at::for_blob(const_cast<std::byte*>(bytes.data()), {static_cast<int64_t>(bytes.size())})
      .options(at::TensorOptions(at::kByte).device(device))
      .target_device(device)
      .make_tensor();
}

// One microbatch within one step.
struct MicrobatchState {
  explicit MicrobatchState(MicrobatchPasses made) : passes(std::move(made)) {}

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
             const OptimizerTraits* optimizer, OptimizerOptions options,
             const std::vector<StateGroup>& away, at::Device device, int threads)
      : layers_(model, partition.stages[stage.value], seed, device),
        parameters_(model, partition, stage, seed, optimizer, std::move(options), away, device,
                    threads),
        order_({.first = layers_.IsFirst(), .last = layers_.IsLast()}) {}

  absl::Status BeginStep(const StepInputs& inputs) override;
  void Watch(PassWatch* watch) override { watch_ = watch; }
  absl::StatusOr<TensorSpans> Buffers(Boundary boundary, MicrobatchId microbatch) override;
  absl::Status Release(Boundary boundary, MicrobatchId microbatch) override;
  absl::Status Forward(MicrobatchId microbatch) override;
  absl::Status Drop(MicrobatchId microbatch, const LayerTensors& tensors) override;
  absl::Status Recompute(MicrobatchId microbatch, StageRange layers) override;
  absl::Status Collect(MicrobatchId microbatch, const LayerTensors& tensors) override;
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
  absl::Status StepLayers(const UpdateSettings& settings, StageRange layers) override;
  std::vector<StepTensor> StepTensors() override { return parameters_.StepTensors(); }
  absl::Status KeepStateOnHost(const TensorSpans& memory) override {
    return parameters_.KeepStateOnHost(memory);
  }
  absl::Status StepOnHost(const UpdateSettings& settings, StageRange layers,
                          const std::vector<HostStepMemory>& memory) override;
  absl::Status CopyToHost(absl::Span<const std::byte> own, absl::Span<std::byte> host) override {
    if (IsOnHost(own)) return StageCompute::CopyToHost(own, host);
    return Copy(Over(own, layers_.device()), Over(host, at::kCPU));
  }
  absl::Status CopyFromHost(absl::Span<const std::byte> host, absl::Span<std::byte> own) override {
    if (IsOnHost(own)) return StageCompute::CopyFromHost(host, own);
    return Copy(Over(host, at::kCPU), Over(own, layers_.device()));
  }
  absl::Status CopyWithin(absl::Span<const std::byte> other, absl::Span<std::byte> own) override {
    if (layers_.device().is_cpu()) return StageCompute::CopyWithin(other, own);
    return Copy(Over(other, layers_.device()), Over(own, layers_.device()));
  }
  StateMemory& state_memory() override { return parameters_; }
  std::vector<StateTensor> State() override { return parameters_.State(); }
  int LiveMicrobatches() const override { return order_.LiveMicrobatches(); }

 private:
  using Half = MicrobatchPasses::Half;

  // Requires: the microbatch is of this step.
  MicrobatchState& At(MicrobatchId microbatch) { return states_[microbatch.value]; }
  // Where the tensors of a boundary are kept, if the stage has this boundary and it may exist now.
  absl::StatusOr<std::vector<at::Tensor>*> Place(Boundary boundary, MicrobatchId microbatch);
  absl::Status RunBackward(MicrobatchId microbatch, Half half);
  absl::Status AwaitDevice() const;
  absl::Status Copy(const at::Tensor& from, const at::Tensor& to) const;
  // Of bytes that this stage has given out.
  bool IsOnHost(absl::Span<const std::byte> own) const {
    return layers_.device().is_cpu() || parameters_.IsStateOnHost(own);
  }

  StageLayers layers_;
  StageParameters parameters_;
  StageOrder order_;
  std::vector<MicrobatchState> states_;
  PassWatch* watch_ = nullptr;
};

// An action ends when the device is through with it: what fails there is this action's error, and
// the times that are taken around it are those of the work. Within an action the host runs ahead.
absl::Status TorchStage::AwaitDevice() const {
  const at::Device device = layers_.device();
  if (device.is_cpu()) return absl::OkStatus();
  return CallTorch("waiting for the device", [&] {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  });
}

absl::Status TorchStage::Copy(const at::Tensor& from, const at::Tensor& to) const {
  SIPHON_RETURN_IF_ERROR(CallTorch("copying", [&] { to.copy_(from); }));
  return AwaitDevice();
}

absl::Status TorchStage::BeginStep(const StepInputs& inputs) {
  SIPHON_RETURN_IF_ERROR(order_.CheckBeginStep());
  SIPHON_RETURN_IF_ERROR(layers_.BeginStep(inputs));
  order_.DidBeginStep(layers_.microbatches(), inputs.mode);
  return CallTorch("beginning a step", [&] {
    states_.clear();
    states_.reserve(layers_.microbatches());
    for (int microbatch = 0; microbatch < layers_.microbatches(); ++microbatch) {
      states_.emplace_back(MicrobatchPasses(MicrobatchId(microbatch), &layers_, &parameters_));
    }
    if (layers_.IsTraining()) parameters_.BeginStep(layers_.microbatches());
  });
}

absl::StatusOr<std::vector<at::Tensor>*> TorchStage::Place(Boundary boundary,
                                                           MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.CheckBoundary(boundary, microbatch));
  MicrobatchState& state = At(microbatch);
  if (boundary == Boundary::kInput) return &state.input;
  if (boundary == Boundary::kOutputGradient) return &state.output_gradient;
  std::vector<at::Tensor>& made =
      boundary == Boundary::kOutput ? state.output : state.input_gradient;
  if (made.empty()) return StageOrder::NotThere(boundary, microbatch);
  return &made;
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
  SIPHON_RETURN_IF_ERROR(order_.CheckRelease(boundary, microbatch));
  SIPHON_ASSIGN_OR_RETURN(std::vector<at::Tensor> * tensors, Place(boundary, microbatch));
  tensors->clear();
  return CallTorch("freeing saved tensors", [&] { At(microbatch).passes.collected().RetryFree(); });
}

absl::Status TorchStage::Forward(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());
  MicrobatchState& state = At(microbatch);
  SIPHON_RETURN_IF_ERROR(order_.CheckForward(microbatch, !state.input.empty()));
  std::vector<at::Tensor> activations = std::exchange(state.input, {});
  if (layers_.IsFirst()) {
    SIPHON_RETURN_IF_ERROR(
        CallTorch("reading the input", [&] { activations = {layers_.Data(microbatch)}; }));
  }
  SIPHON_ASSIGN_OR_RETURN(activations, state.passes.Forward(std::move(activations), watch_));
  if (layers_.IsLast()) {
    SIPHON_RETURN_IF_ERROR(
        CallTorch("reading the loss", [&] { state.loss = activations[0].item<float>(); }));
  } else {
    state.output = std::move(activations);
  }
  SIPHON_RETURN_IF_ERROR(AwaitDevice());
  order_.DidForward(microbatch);
  return absl::OkStatus();
}

absl::Status TorchStage::Drop(MicrobatchId microbatch, const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(order_.CheckWaiting(microbatch, "dropped"));
  return At(microbatch).passes.Drop(tensors);
}

absl::Status TorchStage::Recompute(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.CheckForwarded(microbatch, "computed again"));
  SIPHON_RETURN_IF_ERROR(At(microbatch).passes.Recompute(layers));
  return AwaitDevice();
}

absl::Status TorchStage::Collect(MicrobatchId microbatch, const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(order_.CheckWaiting(microbatch, "collected"));
  return At(microbatch).passes.Collect(tensors);
}

// In the middle of a pass too, so whatever its phase.
absl::StatusOr<TensorSpans> TorchStage::SavedTensors(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());
  return At(microbatch).passes.collected().Memory(layers);
}

absl::Status TorchStage::FreeSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());  // in the middle of a pass too
  return CallTorch("freeing saved tensors",
                   [&] { return At(microbatch).passes.collected().Free(layers); });
}

absl::StatusOr<TensorSpans> TorchStage::RefillSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.CheckForwarded(microbatch, "brought back"));
  return CallTorch("memory for saved tensors",
                   [&] { return At(microbatch).passes.collected().Refill(layers); });
}

absl::Status TorchStage::Backward(MicrobatchId microbatch) {
  return RunBackward(microbatch, Half::kBoth);
}

absl::Status TorchStage::BackwardInput(MicrobatchId microbatch) {
  return RunBackward(microbatch, Half::kInput);
}

absl::Status TorchStage::RunBackward(MicrobatchId microbatch, Half half) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());
  MicrobatchState& state = At(microbatch);
  SIPHON_RETURN_IF_ERROR(order_.CheckBackward(microbatch, !state.output_gradient.empty()));
  std::vector<at::Tensor> gradients = std::exchange(state.output_gradient, {});
  SIPHON_ASSIGN_OR_RETURN(gradients, state.passes.Backward(std::move(gradients), half, watch_));
  if (!layers_.IsFirst()) state.input_gradient = std::move(gradients);
  SIPHON_RETURN_IF_ERROR(AwaitDevice());
  if (half == Half::kInput) {
    order_.DidBackwardInput(microbatch);
  } else {
    order_.DidBackward(microbatch);
  }
  return absl::OkStatus();
}

absl::Status TorchStage::BackwardWeight(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.CheckBackwardWeight(microbatch));
  SIPHON_RETURN_IF_ERROR(At(microbatch).passes.BackwardWeight(watch_));
  SIPHON_RETURN_IF_ERROR(AwaitDevice());
  order_.DidBackwardWeight(microbatch);
  return absl::OkStatus();
}

std::vector<float> TorchStage::Losses() const {
  std::vector<float> losses;
  for (int index = 0; layers_.IsLast() && index < order_.microbatches(); ++index) {
    if (*order_.PhaseOf(MicrobatchId(index)) != StageOrder::Phase::kWaiting) {
      losses.push_back(states_[index].loss);
    }
  }
  return losses;
}

absl::StatusOr<std::vector<SharedGradient>> TorchStage::SharedGradients() {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  return CallTorch("memory for shared gradients", [&] { return parameters_.SharedGradients(); });
}

absl::Status TorchStage::AddSharedGradients() {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  return CallTorch("adding shared gradients", [&] { return parameters_.AddSharedGradients(); });
}

absl::StatusOr<std::vector<float>> TorchStage::GradientNorms() {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  return CallTorch("norms of the gradients", [&] { return parameters_.GradientNorms(); });
}

absl::Status TorchStage::Step(const UpdateSettings& settings) {
  return StepLayers(settings, {layers_.begin(), layers_.end()});
}

absl::Status TorchStage::StepLayers(const UpdateSettings& settings, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  SIPHON_RETURN_IF_ERROR(
      CallTorch("optimizer step", [&] { return parameters_.Update(settings, layers); }));
  return AwaitDevice();
}

absl::Status TorchStage::StepOnHost(const UpdateSettings& settings, StageRange layers,
                                    const std::vector<HostStepMemory>& memory) {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  return CallTorch("optimizer step on the host",
                   [&] { return parameters_.UpdateOnHost(settings, layers, memory); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageCompute>> MakeTorchStage(
    const Model& model, const StagePartition& partition, StageId stage, uint64_t seed,
    const OptimizerOptions& optimizer, const std::vector<StateGroup>& away,
    const ComputeDevice& device, int threads) {
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
  UseEngineWithSinks();
  return CallTorch(absl::StrCat("memory for the parameters of stage ", stage.value),
                   [&]() -> std::unique_ptr<StageCompute> {
                     return std::make_unique<TorchStage>(model, partition, stage, seed, traits,
                                                         optimizer, away, ToDevice(device),
                                                         threads);
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
