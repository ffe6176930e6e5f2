#include "launch/run/layer_profile/layer_rig.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/run/job/optimizer_of.h"
#include "pipeline/torch/device/step_clock.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "planner/memory/layer_uses.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Runs `pass` and gives the time that it took.
template <typename Pass>
absl::StatusOr<int64_t> Timed(const StepClock& clock, Pass&& pass) {
  const int64_t begin = clock.NowNs();
  SIPHON_RETURN_IF_ERROR(pass());
  return clock.NowNs() - begin;
}

Nanos Median(std::vector<int64_t> samples) {
  if (samples.empty()) return Nanos();
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return Nanos(*middle);
}

constexpr int kMillion = 1'000'000;

std::vector<SavedTensor> ListedOf(const LayerSpec& layer, const TrainConfig& train) {
  const absl::StatusOr<Precision> precision = ParsePrecision(train.precision);
  if (!layer.memory.has_value() || !precision.ok()) return {};
  return SavedOf(*layer.memory, train.microbatch, *precision);
}

Bytes SumOf(const std::vector<SavedTensor>& tensors, size_t count) {
  Bytes sum;
  for (size_t tensor = 0; tensor < count; ++tensor) sum += tensors[tensor].bytes;
  return sum;
}

Bytes AtLeastZero(Bytes bytes) { return std::max(bytes, Bytes(0)); }

}  // namespace

LayerRig::LayerRig(const PreparedJob& job, int layer)
    : job_(job),
      layer_(layer),
      clock_(static_cast<int>(job.job.pipeline.threads_per_worker)),
      listed_(ListedOf(job.model.spec.layers[layer], job.job.train)),
      firsts_(FirstTensorsOf({.saved = listed_})) {
  times_.first_ns.resize(firsts_.size());
}

absl::StatusOr<std::unique_ptr<LayerRig>> LayerRig::Make(const PreparedJob& job,
                                                         const StagePartition& single_layers,
                                                         int layer) {
  std::unique_ptr<LayerRig> rig(new LayerRig(job, layer));
  rig->ledger_ = std::make_shared<MemoryLedger>(Bytes(0));
  rig->input_ledger_ = std::make_shared<MemoryLedger>(Bytes(0));
  const LedgerScope scope(rig->ledger_);
  SIPHON_ASSIGN_OR_RETURN(rig->stage_, MakeTorchStage(job.model, single_layers, StageId(layer),
                                                      static_cast<uint64_t>(job.job.train.seed),
                                                      OptimizerOf(job.job.train)));
  return rig;
}

absl::Status LayerRig::BeginStep(const StepInputs& inputs) {
  const LedgerScope scope(ledger_);
  return Annotate(stage_->BeginStep(inputs), Spec().name);
}

absl::Status LayerRig::Receive(Boundary to, LayerRig& neighbour, Boundary from,
                               MicrobatchId microbatch) {
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans target, stage_->Buffers(to, microbatch));
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans source, neighbour.stage_->Buffers(from, microbatch));
  for (size_t part = 0; part < target.size(); ++part) {
    if (target[part].empty()) continue;
    std::memcpy(target[part].data(), source[part].data(), target[part].size());
  }
  return neighbour.stage_->Release(from, microbatch);
}

absl::Status LayerRig::Forward(MicrobatchId microbatch, LayerRig* before, SavedMode saved,
                               Noting noting) {
  const LedgerScope scope(ledger_);
  resting_ = ledger_->used();
  if (saved != SavedMode::kKept) {
    dropped_ = saved == SavedMode::kRemade || firsts_.empty() ? kAll : turn_++ % firsts_.size();
    const Bytes first =
        dropped_ == kAll ? Bytes(0) : SumOf(listed_, static_cast<size_t>(firsts_[dropped_]));
    SIPHON_RETURN_IF_ERROR(stage_->Drop(microbatch, {{layer_, layer_ + 1}, first}));
  }
  if (before != nullptr) {
    const LedgerScope inputs(input_ledger_);
    SIPHON_RETURN_IF_ERROR(Receive(Boundary::kInput, *before, Boundary::kOutput, microbatch));
  }
  ledger_->ResetPeak();
  SIPHON_ASSIGN_OR_RETURN(const int64_t time,
                          Timed(clock_, [&] { return stage_->Forward(microbatch); }));
  forward_bytes_.peak = ledger_->peak() - resting_;
  forward_bytes_.end = Used();
  SIPHON_ASSIGN_OR_RETURN(forward_bytes_.output, OutputBytes(microbatch));
  if (noting == Noting::kOn) times_.forward_ns.push_back(time);
  return absl::OkStatus();
}

absl::Status LayerRig::Recompute(MicrobatchId microbatch, Noting noting) {
  const LedgerScope scope(ledger_);
  SIPHON_ASSIGN_OR_RETURN(const int64_t time, Timed(clock_, [&] {
                            return stage_->Recompute(microbatch, {layer_, layer_ + 1});
                          }));
  if (noting == Noting::kOff) return absl::OkStatus();
  (dropped_ == kAll ? times_.recompute_ns : times_.first_ns[dropped_]).push_back(time);
  return absl::OkStatus();
}

absl::StatusOr<Bytes> LayerRig::OutputBytes(MicrobatchId microbatch) {
  Bytes bytes;
  if (layer_ + 1 == static_cast<int>(job_.model.spec.layers.size())) return bytes;
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans spans, stage_->Buffers(Boundary::kOutput, microbatch));
  for (const auto& span : spans) bytes += Bytes(static_cast<int64_t>(span.size()));
  return bytes;
}

void LayerRig::NoteForwardBytes(Bytes stash, Bytes saved_input) {
  const Bytes output_alone = forward_bytes_.end - stash;
  const Bytes listed = SumOf(listed_, listed_.size());
  is_listed_ = !listed_.empty() && listed <= stash;
  sizes_.saved = is_listed_ ? listed_ : std::vector<SavedTensor>{{"all", stash}};
  if (is_listed_ && listed < stash) sizes_.saved.push_back({"other", stash - listed, kMillion});
  sizes_.saved_input = saved_input;
  sizes_.saved_output = AtLeastZero(forward_bytes_.output - output_alone);
  sizes_.boundary = forward_bytes_.output;
  sizes_.forward_workspace =
      AtLeastZero(forward_bytes_.peak - output_alone - (stash - saved_input));
}

absl::Status LayerRig::Backward(MicrobatchId microbatch, LayerRig* after, BackwardMode kind,
                                Noting noting) {
  const LedgerScope scope(ledger_);
  const Bytes stash = Used();  // the next layer has taken the output by now
  const Bytes saved_input = input_ledger_->used();
  if (after != nullptr) {
    SIPHON_RETURN_IF_ERROR(
        Receive(Boundary::kOutputGradient, *after, Boundary::kInputGradient, microbatch));
  }
  const Bytes before = ledger_->used();
  ledger_->ResetPeak();
  const bool whole = kind == BackwardMode::kWhole;
  SIPHON_ASSIGN_OR_RETURN(const int64_t time, Timed(clock_, [&] {
                            return whole ? stage_->Backward(microbatch)
                                         : stage_->BackwardInput(microbatch);
                          }));
  const Bytes workspace = AtLeastZero(ledger_->peak() - before);
  const Bytes between = Used();
  const Bytes before_weights = ledger_->used();
  ledger_->ResetPeak();
  int64_t weight_time = 0;
  if (!whole) {
    SIPHON_ASSIGN_OR_RETURN(weight_time,
                            Timed(clock_, [&] { return stage_->BackwardWeight(microbatch); }));
  }
  if (noting == Noting::kOff) return absl::OkStatus();
  NoteForwardBytes(stash, saved_input);
  if (whole) {
    times_.whole_ns.push_back(time);
    sizes_.backward_workspace = workspace;
  } else {
    times_.input_ns.push_back(time);
    times_.weight_ns.push_back(weight_time);
    sizes_.input_backward_workspace = workspace;
    sizes_.weight_backward_workspace = AtLeastZero(ledger_->peak() - before_weights);
    sizes_.kept_for_weights = AtLeastZero(between - Used());
  }
  return absl::OkStatus();
}

absl::Status LayerRig::Step(int64_t update, Noting noting) {
  const LedgerScope scope(ledger_);
  // Uses of its parameters in other layers have gradients too; their values do not matter here.
  SIPHON_ASSIGN_OR_RETURN(const std::vector<SharedGradient> shared, stage_->SharedGradients());
  for (const SharedGradient& gradient : shared) {
    if (gradient.layer == layer_) continue;
    std::fill(gradient.bytes.begin(), gradient.bytes.end(), std::byte{0});
  }
  SIPHON_RETURN_IF_ERROR(stage_->AddSharedGradients());
  SIPHON_ASSIGN_OR_RETURN(
      const int64_t time, Timed(clock_, [&]() -> absl::Status {
        SIPHON_RETURN_IF_ERROR(stage_->GradientNorms().status());
        return stage_->Step({.update = update, .learning_rate = job_.job.train.learning_rate});
      }));
  if (noting == Noting::kOn) times_.step_ns.push_back(time);
  return absl::OkStatus();
}

void LayerRig::SetMade(LayerProfile& profile) const {
  if (!is_listed_) return;
  int64_t least = 0;
  size_t tensor = 0;
  for (size_t place = 0; place < firsts_.size(); ++place) {
    for (; tensor < static_cast<size_t>(firsts_[place]); ++tensor) {
      int64_t made = profile.saved[tensor].made_ppm;
      if (!times_.first_ns[place].empty()) {
        made = Median(times_.first_ns[place]).value * kMillion / profile.recompute.value;
      }
      least = std::clamp<int64_t>(made, least, kMillion);
      profile.saved[tensor].made_ppm = static_cast<int>(least);
    }
  }
}

LayerProfile LayerRig::Profile() const {
  LayerProfile profile = sizes_;
  profile.name = Spec().name;
  profile.forward = Median(times_.forward_ns);
  if (!times_.recompute_ns.empty()) {  // 0 would say that it is not known
    profile.recompute = std::max(Median(times_.recompute_ns), Nanos(1));
    SetMade(profile);
  }
  profile.input_backward = Median(times_.input_ns);
  profile.weight_backward = Median(times_.weight_ns);
  profile.whole_backward = Median(times_.whole_ns);
  profile.optimizer = Median(times_.step_ns);
  for (const StateTensor& tensor : stage_->State()) {
    const bool parameter = tensor.kind == StateTensor::Kind::kParameter;
    (parameter ? profile.parameters : profile.optimizer_state) += SizeOf(tensor.spec);
  }
  for (const StepTensor& tensor : stage_->StepTensors()) profile.gradients += tensor.gradient_bytes;
  return profile;
}

}  // namespace siphon
