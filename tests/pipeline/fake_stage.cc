#include "tests/pipeline/fake_stage.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Span<std::byte> BytesOf(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

FakeStage::FakeStage(StageId stage, int stages, std::vector<SharedParameter> shared)
    : stage_(stage), stages_(stages) {
  for (const SharedParameter& parameter : shared) {
    if (std::find(parameter.stages.begin(), parameter.stages.end(), stage) ==
        parameter.stages.end()) {
      continue;
    }
    for (size_t use = 0; use < parameter.uses.size(); ++use) {
      uses_.push_back({parameter.name, parameter.uses[use].layer, parameter.stages[use] == stage,
                       std::vector<float>(5)});
    }
  }
}

absl::Status FakeStage::MaybeFail() {
  if (!fail_next_) return absl::OkStatus();
  fail_next_ = false;
  return absl::InternalError("injected");
}

absl::Status FakeStage::BeginStep(const StepInputs& inputs) {
  mode_ = inputs.mode;
  losses_.clear();
  accumulated_.clear();
  backwards_ = 0;
  gradient_ = 0;
  for (Use& use : uses_) std::fill(use.gradient.begin(), use.gradient.end(), 0.0f);
  return MaybeFail();
}

FakeStage::Tensors FakeStage::Make(Boundary boundary, float value) const {
  const bool behind = boundary == Boundary::kOutput || boundary == Boundary::kOutputGradient;
  const int before = behind ? stage_.value : stage_.value - 1;
  return {.first = std::vector<float>(4, value),
          .empty = {},
          .last = std::vector<float>(static_cast<size_t>(before + 1) * 16, value)};
}

absl::StatusOr<TensorSpans> FakeStage::Buffers(Boundary boundary, MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  std::unique_ptr<Tensors>& tensors = buffers_[{boundary, microbatch.value}];
  if (tensors == nullptr) {
    if (boundary == Boundary::kOutput || boundary == Boundary::kInputGradient) {
      buffers_.erase({boundary, microbatch.value});
      return absl::FailedPreconditionError("there is nothing to send yet");
    }
    tensors = std::make_unique<Tensors>(Make(boundary, -1));
  }
  return TensorSpans{BytesOf(tensors->first), BytesOf(tensors->empty), BytesOf(tensors->last)};
}

absl::Status FakeStage::Release(Boundary boundary, MicrobatchId microbatch) {
  if (buffers_.erase({boundary, microbatch.value}) == 1) return absl::OkStatus();
  return absl::FailedPreconditionError("released twice");
}

absl::StatusOr<float> FakeStage::TakeValue(Boundary boundary, MicrobatchId microbatch) {
  const auto found = buffers_.find({boundary, microbatch.value});
  if (found == buffers_.end()) return absl::FailedPreconditionError("there is no input");
  const Tensors tensors = std::move(*found->second);
  buffers_.erase(found);
  for (const std::vector<float>* values : {&tensors.first, &tensors.last}) {
    for (const float value : *values) {
      if (value != tensors.first[0]) return absl::InternalError("elements differ");
    }
  }
  return tensors.first[0];
}

absl::Status FakeStage::Forward(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  absl::StatusOr<float> input = static_cast<float>(microbatch.value + 1);
  if (stage_.value > 0) input = TakeValue(Boundary::kInput, microbatch);
  if (!input.ok()) return input.status();
  const float output = *input + static_cast<float>(stage_.value + 1);
  if (last()) {
    losses_[microbatch.value] = output;
  } else {
    buffers_[{Boundary::kOutput, microbatch.value}] =
        std::make_unique<Tensors>(Make(Boundary::kOutput, output));
  }
  if (mode_ == StepMode::kTrain) live_[microbatch.value] = output;
  return SaveCollected(microbatch);
}

absl::Status FakeStage::Drop(MicrobatchId microbatch, const LayerTensors& tensors) {
  const StageRange& layers = tensors.layers;
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  if (live_.contains(microbatch.value)) return absl::FailedPreconditionError("forward is done");
  memory_calls_.push_back(
      absl::StrCat("drop ", microbatch.value, " [", layers.begin, ", ", layers.end, ")"));
  dropped_.insert({microbatch.value, {layers.begin, layers.end}});
  return absl::OkStatus();
}

absl::Status FakeStage::Recompute(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  if (!live_.contains(microbatch.value)) return absl::FailedPreconditionError("no forward yet");
  const auto [first, end] = dropped_.equal_range(microbatch.value);
  for (auto it = first; it != end; ++it) {
    if (it->second != std::pair(layers.begin, layers.end)) continue;
    dropped_.erase(it);
    memory_calls_.push_back(
        absl::StrCat("recompute ", microbatch.value, " [", layers.begin, ", ", layers.end, ")"));
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError("nothing was dropped");
}

absl::Status FakeStage::Collect(MicrobatchId microbatch, const LayerTensors& tensors) {
  const StageRange& layers = tensors.layers;
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  if (live_.contains(microbatch.value)) return absl::FailedPreconditionError("forward is done");
  memory_calls_.push_back(
      absl::StrCat("collect ", microbatch.value, " [", layers.begin, ", ", layers.end, ")"));
  collected_.insert({microbatch.value, {.layers = layers}});
  return absl::OkStatus();
}

std::vector<float> FakeStage::SavedValues(int microbatch, const Saved& saved, size_t size) {
  const auto value = static_cast<float>(1000 * microbatch + 10 * saved.layers.begin);
  return std::vector<float>(size, value + static_cast<float>(size));
}

absl::StatusOr<FakeStage::Saved*> FakeStage::FindSaved(MicrobatchId microbatch, StageRange layers) {
  const auto [first, end] = collected_.equal_range(microbatch.value);
  for (auto it = first; it != end; ++it) {
    if (it->second.layers == layers && it->second.forwarded) return &it->second;
  }
  return absl::FailedPreconditionError("nothing was saved");
}

absl::StatusOr<TensorSpans> FakeStage::SavedTensors(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  SIPHON_ASSIGN_OR_RETURN(Saved * saved, FindSaved(microbatch, layers));
  return TensorSpans{BytesOf(saved->first), BytesOf(saved->second)};
}

absl::Status FakeStage::FreeSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  SIPHON_ASSIGN_OR_RETURN(Saved * saved, FindSaved(microbatch, layers));
  if (saved->first.empty()) return absl::FailedPreconditionError("freed twice");
  saved->first.clear();
  saved->second.clear();
  return absl::OkStatus();
}

absl::StatusOr<TensorSpans> FakeStage::RefillSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  SIPHON_ASSIGN_OR_RETURN(Saved * saved, FindSaved(microbatch, layers));
  if (!saved->first.empty()) return absl::FailedPreconditionError("it is there");
  saved->first.assign(3, -1);
  saved->second.assign(5, -1);
  return TensorSpans{BytesOf(saved->first), BytesOf(saved->second)};
}

int FakeStage::saved_tensors() const {
  int count = 0;
  for (const auto& [microbatch, saved] : collected_) count += saved.first.empty() ? 0 : 2;
  return count;
}

absl::Status FakeStage::SaveCollected(MicrobatchId microbatch) {
  const auto [first, end] = collected_.equal_range(microbatch.value);
  for (auto it = first; it != end; ++it) {
    Saved& saved = it->second;
    saved.forwarded = true;
    saved.first = SavedValues(microbatch.value, saved, 3);
    saved.second = SavedValues(microbatch.value, saved, 5);
    if (watch_ != nullptr) SIPHON_RETURN_IF_ERROR(watch_->Saved(microbatch, saved.layers));
  }
  return absl::OkStatus();
}

absl::Status FakeStage::UseCollected(MicrobatchId microbatch) {
  const auto [first, end] = collected_.equal_range(microbatch.value);
  for (auto it = first; it != end; ++it) {
    Saved& saved = it->second;
    if (watch_ != nullptr) SIPHON_RETURN_IF_ERROR(watch_->Need(microbatch, saved.layers));
    if (saved.first != SavedValues(microbatch.value, saved, 3) ||
        saved.second != SavedValues(microbatch.value, saved, 5)) {
      return absl::InternalError("saved tensors are not what they were");
    }
  }
  collected_.erase(first, end);
  return absl::OkStatus();
}

absl::Status FakeStage::Backward(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(BackwardInput(microbatch));
  return BackwardWeight(microbatch);
}

absl::Status FakeStage::BackwardInput(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  if (live_.erase(microbatch.value) == 0) return absl::FailedPreconditionError("no forward yet");
  SIPHON_RETURN_IF_ERROR(UseCollected(microbatch));
  // What is still dropped comes back with the backward.
  const auto [first, end] = dropped_.equal_range(microbatch.value);
  for (auto it = first; it != end && watch_ != nullptr; ++it) {
    SIPHON_RETURN_IF_ERROR(
        watch_->BeginRecompute(microbatch, {it->second.first, it->second.second}));
    watch_->EndRecompute();
  }
  dropped_.erase(first, end);
  absl::StatusOr<float> gradient = 1.0f;
  if (!last()) gradient = TakeValue(Boundary::kOutputGradient, microbatch);
  if (!gradient.ok()) return gradient.status();
  half_done_[microbatch.value] = *gradient;
  if (stage_.value > 0) {
    buffers_[{Boundary::kInputGradient, microbatch.value}] = std::make_unique<Tensors>(
        Make(Boundary::kInputGradient, *gradient + static_cast<float>(10 * (stage_.value + 1))));
  }
  return absl::OkStatus();
}

absl::Status FakeStage::BackwardWeight(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  const auto half = half_done_.find(microbatch.value);
  if (half == half_done_.end()) return absl::FailedPreconditionError("no input half yet");
  gradient_ += half->second;
  half_done_.erase(half);
  accumulated_.push_back(microbatch.value);
  ++backwards_;
  for (Use& use : uses_) {
    if (!use.own) continue;
    for (float& element : use.gradient) element = static_cast<float>((use.layer + 1) * backwards_);
  }
  return absl::OkStatus();
}

std::vector<float> FakeStage::Losses() const {
  std::vector<float> losses;
  for (const auto& [microbatch, loss] : losses_) losses.push_back(loss);
  return losses;
}

absl::StatusOr<std::vector<SharedGradient>> FakeStage::SharedGradients() {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  std::vector<SharedGradient> gradients;
  for (Use& use : uses_) gradients.push_back({use.parameter, use.layer, BytesOf(use.gradient)});
  return gradients;
}

absl::Status FakeStage::AddSharedGradients() {
  for (const Use& use : uses_) {
    for (const float element : use.gradient) {
      if (element != static_cast<float>((use.layer + 1) * backwards_)) {
        return absl::InternalError(absl::StrCat("stage ", stage_.value, ": ", use.parameter,
                                                " used by layer ", use.layer, ": ", element,
                                                " is not that use's gradient"));
      }
    }
    gradient_ += use.gradient[0];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> FakeStage::GradientNorms() {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  return std::vector<float>{std::abs(gradient_)};
}

absl::Status FakeStage::Step(const UpdateSettings& settings) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  parameter_ -= static_cast<float>(settings.learning_rate) * settings.gradient_scale * gradient_;
  updates_.push_back(settings);
  return absl::OkStatus();
}

// All layers but the stage's own number have nothing to step.
absl::Status FakeStage::StepLayers(const UpdateSettings& settings, StageRange layers) {
  stepped_layers_.push_back(layers);
  const bool mine = layers.begin <= stage_.value && stage_.value < layers.end;
  return mine ? Step(settings) : absl::OkStatus();
}

std::vector<StepTensor> FakeStage::StepTensors() {
  const auto span = [](float& number) {
    return absl::Span<std::byte>(reinterpret_cast<std::byte*>(&number), sizeof(float));
  };
  return {{.layer = stage_.value,
           .parameter_bytes = Bytes(sizeof(float)),
           .gradient_bytes = Bytes(sizeof(float)),
           .state_bytes = Bytes(0),
           .parameter = span(parameter_),
           .gradient = span(gradient_)}};
}

// It has none.
absl::Status FakeStage::KeepStateOnHost(const TensorSpans&) { return absl::OkStatus(); }

absl::Status FakeStage::StepOnHost(const UpdateSettings& settings, StageRange layers,
                                   const std::vector<HostStepMemory>& memory) {
  SIPHON_RETURN_IF_ERROR(MaybeFail());
  if (stage_.value < layers.begin || layers.end <= stage_.value) return absl::OkStatus();
  float value = 0, gradient = 0;
  std::memcpy(&value, memory[0].parameter.data(), sizeof(value));
  std::memcpy(&gradient, memory[0].gradient.data(), sizeof(gradient));
  value -= static_cast<float>(settings.learning_rate) * settings.gradient_scale * gradient;
  std::memcpy(memory[0].parameter.data(), &value, sizeof(value));
  updates_.push_back(settings);
  return absl::OkStatus();
}

}  // namespace siphon
