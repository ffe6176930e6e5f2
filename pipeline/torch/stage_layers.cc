#include "pipeline/torch/stage_layers.h"

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/status.h"
#include "swap/memory_ledger.h"

namespace siphon {

namespace {

std::vector<at::Tensor> DataAsComputed(std::vector<at::Tensor> data, at::ScalarType computed) {
  for (at::Tensor& tensor : data) {
    if (at::isFloatingType(tensor.scalar_type())) tensor = tensor.to(computed);
  }
  return data;
}

}  // namespace

absl::Status StageLayers::BeginStep(const StepInputs& inputs) {
  if (inputs.target_count <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("the global batch has ", inputs.target_count,
                                                   " targets; it needs at least one"));
  }
  for (size_t microbatch = 0; microbatch < inputs.microbatches.size(); ++microbatch) {
    SIPHON_RETURN_IF_ERROR(
        CheckData(inputs.microbatches[microbatch], static_cast<int>(microbatch)));
  }
  inputs_ = inputs;
  return absl::OkStatus();
}

// The stages at the ends read the data; all others take its number of samples only.
absl::Status StageLayers::CheckData(const MicrobatchData& data, int microbatch) const {
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

at::Tensor StageLayers::Data(MicrobatchId microbatch) const {
  const MicrobatchData& data = inputs_.microbatches[microbatch.value];
  return DataOn(device_, data.input_spec, data.input);
}

std::vector<at::Tensor> StageLayers::EmptyOutputs(int layer, MicrobatchId microbatch) const {
  const MemoryKindScope kind(MemoryKind::kBoundary);
  std::vector<at::Tensor> tensors;
  for (const TensorSpec& sample : Spec(layer).outputs) {
    tensors.push_back(EmptyTensor(Batched(sample, Samples(microbatch)), device_));
  }
  return tensors;
}

absl::StatusOr<LayerPass> StageLayers::Forward(int layer, MicrobatchId microbatch,
                                               const std::vector<at::Tensor>& parameters,
                                               const std::vector<at::Tensor>& inputs) const {
  const LayerPass::Function function = [&](const std::vector<at::Tensor>& uses,
                                           const std::vector<at::Tensor>& activations) {
    return Call(layer, microbatch, uses, activations);
  };
  // The data has no use for a gradient, whatever its type.
  const auto wanted =
      layer == 0 ? LayerPass::InputGradients::kUnwanted : LayerPass::InputGradients::kWanted;
  const MemoryKindScope kind(MemoryKind::kActivations);  // what stays and what does not, alike
  absl::StatusOr<LayerPass> pass = CallTorch("forward", [&] {
    return IsTraining() ? LayerPass::Train(function, parameters, inputs, wanted)
                        : LayerPass::Evaluate(function, parameters, inputs);
  });
  if (!pass.ok() || IsModelEnd(layer)) return pass;
  SIPHON_RETURN_IF_ERROR(CheckOutputs(layer, Samples(microbatch), pass->outputs));
  return pass;
}

std::vector<at::Tensor> StageLayers::Call(int layer, MicrobatchId microbatch,
                                          const std::vector<at::Tensor>& parameters,
                                          const std::vector<at::Tensor>& inputs) const {
  const LayerContext::Position position = {
      .seed = seed_, .step = inputs_.step, .microbatch = microbatch.value, .layer = layer};
  const at::ScalarType computed = ToScalarType(model_.computed);
  LayerContext context(&parameters, position, IsTraining(), computed, device_);
  std::vector<at::Tensor> outputs =
      model_.forward[layer](context, layer == 0 ? DataAsComputed(inputs, computed) : inputs);
  if (!IsModelEnd(layer)) return outputs;
  return {Loss(outputs, microbatch)};
}

at::Tensor StageLayers::Loss(const std::vector<at::Tensor>& outputs,
                             MicrobatchId microbatch) const {
  const MicrobatchData& data = inputs_.microbatches[microbatch.value];
  const int64_t classes = model_.spec.classes;
  const int64_t targets = ElementCount(data.target_spec);
  TORCH_CHECK(outputs.size() == 1, "the last layer returned ", outputs.size(),
              " tensors; it should return the logits alone");
  const at::Tensor& logits = outputs[0];
  const at::ScalarType computed = ToScalarType(model_.computed);
  const absl::string_view type = DTypeName(model_.computed);
  TORCH_CHECK(logits.defined() && logits.scalar_type() == computed && logits.dim() > 0 &&
                  logits.size(-1) == classes && logits.numel() == targets * classes,
              "the last layer produced ", DescribeTensor(logits), "; the logits of ", targets,
              " targets in ", classes, " classes should be ", type, "[..., ", classes, "] of ",
              targets * classes, " elements");
  const at::Tensor target = DataOn(device_, data.target_spec, data.target);
  return at::cross_entropy_loss(logits.reshape({-1, classes}).to(at::kFloat), target.reshape({-1}),
                                {}, at::Reduction::Sum, kIgnoredTarget, /*label_smoothing=*/0.0)
      .div(inputs_.target_count);
}

absl::Status StageLayers::CheckOutputs(int layer, int64_t samples,
                                       const std::vector<at::Tensor>& outputs) const {
  const std::vector<TensorSpec>& declared = Spec(layer).outputs;
  if (outputs.size() != declared.size()) {
    return absl::InvalidArgumentError(absl::StrCat("layer ", Spec(layer).name, " declared ",
                                                   declared.size(), " outputs and produced ",
                                                   outputs.size()));
  }
  for (size_t output = 0; output < outputs.size(); ++output) {
    if (Matches(outputs[output], Batched(declared[output], samples))) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "layer ", Spec(layer).name, " declared ", ToString(declared[output]),
        " a sample and produced ", DescribeTensor(outputs[output]), " for ", samples, " samples"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
