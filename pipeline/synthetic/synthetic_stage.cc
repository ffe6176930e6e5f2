#include "pipeline/synthetic/synthetic_stage.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "pipeline/stage_order.h"
#include "pipeline/synthetic/booked_block.h"
#include "pipeline/synthetic/synthetic_activations.h"
#include "pipeline/synthetic/synthetic_boundaries.h"
#include "pipeline/synthetic/synthetic_keys.h"
#include "pipeline/synthetic/synthetic_state.h"
#include "planner/layer_cost.h"
#include "planner/stage_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

class SyntheticStage final : public StageCompute {
 public:
  SyntheticStage(SyntheticSizes sizes, const StageCost& cost, SyntheticState state,
                 SyntheticWorker worker)
      : sizes_(std::move(sizes)),
        cost_(cost),
        position_{.first = sizes_.stage.begin == 0,
                  .last = sizes_.stage.end == static_cast<int>(sizes_.profile->layers.size())},
        worker_(std::move(worker)),
        state_(std::move(state)),
        order_(position_),
        boundaries_({.stage = sizes_.stage, .input = cost.input, .output = cost.output},
                    worker_.ledger) {}

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
  absl::Status AddSharedGradients() override { return order_.CheckGradientsComplete(); }
  absl::StatusOr<std::vector<float>> GradientNorms() override;
  absl::Status Step(const UpdateSettings& settings) override;
  absl::Status StepLayers(const UpdateSettings& settings, StageRange layers) override;
  std::vector<StepTensor> StepTensors() override { return state_.StepTensors(); }
  absl::Status KeepStateOnHost(const TensorSpans& memory) override {
    state_.KeepOnHost(memory);
    return absl::OkStatus();
  }
  absl::Status StepOnHost(const UpdateSettings& settings, StageRange layers,
                          const std::vector<HostStepMemory>& memory) override;
  StateMemory& state_memory() override { return state_; }
  std::vector<StateTensor> State() override { return state_.State(); }
  int LiveMicrobatches() const override { return order_.LiveMicrobatches(); }

 private:
  enum class Half { kBoth, kInput };
  static ActionKind PassOf(Half half) {
    return half == Half::kBoth ? ActionKind::kBackward : ActionKind::kBackwardInput;
  }
  struct PassRoom {
    BookedBlock workspace;
    Bytes grown;  // what its activations have become more
  };

  SyntheticActivations& Kept(MicrobatchId microbatch) {
    return kept_[static_cast<size_t>(microbatch.value)];
  }
  const LayerCost& CostOf(int layer) const {
    return sizes_.layers[static_cast<size_t>(layer - sizes_.stage.begin)];
  }
  // What a backward makes the activations larger at the layer; mostly less than 0.
  Bytes GrowthAt(int layer, Half half) const {
    const Bytes kept = half == Half::kBoth ? Bytes(0) : CostOf(layer).kept_for_weights;
    return kept - FreedByBackward(sizes_.layers, layer - sizes_.stage.begin);
  }
  absl::StatusOr<BookedBlock> Workspace(Bytes bytes) {
    return BookedBlock::Take(worker_.ledger, bytes, MemoryKind::kWorkspace);
  }
  // Around a layer of a pass.
  absl::Status Enter(int layer, bool gradients, PacedWork& work);
  absl::Status Leave(int layer) {
    return watch_ == nullptr ? absl::OkStatus() : watch_->Leave(layer);
  }
  absl::Status ToInput(MicrobatchId microbatch, Half half);
  absl::Status LayerToInput(int layer, MicrobatchId microbatch, Half half, PassRoom& room,
                            PacedWork& work);
  absl::Status ComputeAgain(MicrobatchId microbatch, StageRange layers, Bytes workspace,
                            PacedWork& work);

  const SyntheticSizes sizes_;
  const StageCost cost_;
  const StagePosition position_;
  const SyntheticWorker worker_;
  SyntheticState state_;
  StageOrder order_;
  SyntheticBoundaries boundaries_;
  std::vector<SyntheticActivations> kept_;  // [microbatch]
  int64_t step_ = 0;
  PassWatch* watch_ = nullptr;
};

absl::Status SyntheticStage::BeginStep(const StepInputs& inputs) {
  const int microbatches = static_cast<int>(inputs.microbatches.size());
  SIPHON_RETURN_IF_ERROR(order_.CheckBeginStep());
  order_.DidBeginStep(microbatches, inputs.mode);
  step_ = inputs.step;
  boundaries_.BeginStep(step_, microbatches);
  kept_.clear();
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    kept_.emplace_back(&sizes_, worker_.ledger, step_, MicrobatchId(microbatch));
  }
  if (order_.IsTraining()) state_.BeginStep();
  return absl::OkStatus();
}

absl::StatusOr<TensorSpans> SyntheticStage::Buffers(Boundary boundary, MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.CheckBoundary(boundary, microbatch));
  if (boundary == Boundary::kInput || boundary == Boundary::kOutputGradient) {
    SIPHON_RETURN_IF_ERROR(boundaries_.TakeRoom(boundary, microbatch));
  }
  if (!boundaries_.IsThere(boundary, microbatch)) return StageOrder::NotThere(boundary, microbatch);
  return TensorSpans{boundaries_.BytesOf(boundary, microbatch)};
}

absl::Status SyntheticStage::Release(Boundary boundary, MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.CheckRelease(boundary, microbatch));
  if (!boundaries_.IsThere(boundary, microbatch)) return StageOrder::NotThere(boundary, microbatch);
  boundaries_.Free(boundary, microbatch);
  return absl::OkStatus();
}

absl::Status SyntheticStage::Forward(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());
  SIPHON_RETURN_IF_ERROR(
      order_.CheckForward(microbatch, boundaries_.IsThere(Boundary::kInput, microbatch)));
  PacedWork work(worker_.clock);
  if (!position_.first) SIPHON_RETURN_IF_ERROR(boundaries_.Check(Boundary::kInput, microbatch));
  SIPHON_ASSIGN_OR_RETURN(const BookedBlock workspace, Workspace(cost_.forward_workspace));
  for (int layer = sizes_.stage.begin; layer < sizes_.stage.end; ++layer) {
    SIPHON_RETURN_IF_ERROR(Enter(layer, /*gradients=*/false, work));
    if (order_.IsTraining()) SIPHON_RETURN_IF_ERROR(Kept(microbatch).Save(layer));
    if (layer + 1 == sizes_.stage.end && !position_.last) {
      SIPHON_RETURN_IF_ERROR(boundaries_.Fill(Boundary::kOutput, microbatch));
    }
    work.Take(CostOf(layer).forward);
    if (order_.IsTraining() && watch_ != nullptr) {
      const auto done = Kept(microbatch).FindCollected(layer);
      if (done.has_value()) SIPHON_RETURN_IF_ERROR(watch_->Saved(microbatch, *done));
    }
    SIPHON_RETURN_IF_ERROR(Leave(layer));
  }
  if (!position_.first) boundaries_.Free(Boundary::kInput, microbatch);
  order_.DidForward(microbatch);
  return absl::OkStatus();
}

absl::Status SyntheticStage::Enter(int layer, bool gradients, PacedWork& work) {
  if (watch_ != nullptr) {
    SIPHON_RETURN_IF_ERROR(work.Interrupt([&] { return watch_->Enter(layer); }));
  }
  return state_.CheckThere(layer, gradients);
}

absl::Status SyntheticStage::Drop(MicrobatchId microbatch, const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(order_.CheckWaiting(microbatch, "dropped"));
  return Kept(microbatch).Drop(tensors);
}

absl::Status SyntheticStage::Recompute(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.CheckForwarded(microbatch, "computed again"));
  PacedWork work(worker_.clock);
  return ComputeAgain(microbatch, layers, cost_.forward_workspace, work);
}

absl::Status SyntheticStage::Collect(MicrobatchId microbatch, const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(order_.CheckWaiting(microbatch, "collected"));
  return Kept(microbatch).Collect(tensors);
}

absl::StatusOr<TensorSpans> SyntheticStage::SavedTensors(MicrobatchId microbatch,
                                                         StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());  // in the middle of a pass too
  return Kept(microbatch).CollectedTensors(layers);
}

absl::Status SyntheticStage::FreeSaved(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());  // in the middle of a pass too
  return Kept(microbatch).FreeCollected(layers);
}

absl::StatusOr<TensorSpans> SyntheticStage::RefillSaved(MicrobatchId microbatch,
                                                        StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.CheckForwarded(microbatch, "brought back"));
  return Kept(microbatch).RefillCollected(layers);
}

absl::Status SyntheticStage::ComputeAgain(MicrobatchId microbatch, StageRange layers,
                                          Bytes workspace, PacedWork& work) {
  SIPHON_ASSIGN_OR_RETURN(const BookedBlock taken, Workspace(workspace));
  SIPHON_ASSIGN_OR_RETURN(const Nanos time, Kept(microbatch).SaveAgain(layers));
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    SIPHON_RETURN_IF_ERROR(state_.CheckThere(layer, /*gradients=*/false));
  }
  work.Take(time);
  return absl::OkStatus();
}

absl::Status SyntheticStage::Backward(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(ToInput(microbatch, Half::kBoth));
  order_.DidBackward(microbatch);
  return absl::OkStatus();
}

absl::Status SyntheticStage::BackwardInput(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(ToInput(microbatch, Half::kInput));
  order_.DidBackwardInput(microbatch);
  return absl::OkStatus();
}

absl::Status SyntheticStage::ToInput(MicrobatchId microbatch, Half half) {
  SIPHON_RETURN_IF_ERROR(order_.PhaseOf(microbatch).status());
  SIPHON_RETURN_IF_ERROR(
      order_.CheckBackward(microbatch, boundaries_.IsThere(Boundary::kOutputGradient, microbatch)));
  PacedWork work(worker_.clock);
  if (!position_.last) {
    SIPHON_RETURN_IF_ERROR(boundaries_.Check(Boundary::kOutputGradient, microbatch));
  }
  PassRoom room;
  // That of an I is what its first layer leaves it.
  const Bytes first = GrowthAt(sizes_.stage.end - 1, half);
  SIPHON_ASSIGN_OR_RETURN(room.workspace, Workspace(PassWorkspace(cost_, PassOf(half), first)));
  for (int layer = sizes_.stage.end - 1; layer >= sizes_.stage.begin; --layer) {
    SIPHON_RETURN_IF_ERROR(Enter(layer, half == Half::kBoth, work));
    SIPHON_RETURN_IF_ERROR(LayerToInput(layer, microbatch, half, room, work));
    SIPHON_RETURN_IF_ERROR(Leave(layer));
  }
  if (!position_.last) boundaries_.Free(Boundary::kOutputGradient, microbatch);
  return absl::OkStatus();
}

absl::Status SyntheticStage::LayerToInput(int layer, MicrobatchId microbatch, Half half,
                                          PassRoom& room, PacedWork& work) {
  SyntheticActivations& kept = Kept(microbatch);
  if (const auto collected = kept.FindCollected(layer);
      collected.has_value() && watch_ != nullptr) {
    SIPHON_RETURN_IF_ERROR(watch_->Need(microbatch, *collected));
    work.Resume();
  }
  if (const std::optional<StageRange> dropped = kept.FindDropped(layer); dropped.has_value()) {
    if (watch_ != nullptr) {
      SIPHON_RETURN_IF_ERROR(
          work.Interrupt([&] { return watch_->BeginRecompute(microbatch, *dropped); }));
    }
    // The pass holds its own workspace already, which it does not use meanwhile.
    const Bytes more = std::max(cost_.forward_workspace - room.workspace.size(), Bytes(0));
    SIPHON_RETURN_IF_ERROR(ComputeAgain(microbatch, *dropped, more, work));
    if (watch_ != nullptr) watch_->EndRecompute();
  }
  room.grown += GrowthAt(layer, half);
  const Bytes left = PassWorkspace(cost_, PassOf(half), room.grown);
  if (left < room.workspace.size()) SIPHON_RETURN_IF_ERROR(room.workspace.Resize(left));
  SIPHON_RETURN_IF_ERROR(half == Half::kBoth ? kept.Use(layer) : kept.UseForInput(layer));
  if (layer == sizes_.stage.begin && !position_.first) {
    SIPHON_RETURN_IF_ERROR(boundaries_.Fill(Boundary::kInputGradient, microbatch));
  }
  work.Take(half == Half::kBoth ? WholeBackward(CostOf(layer)) : CostOf(layer).input_backward);
  if (half == Half::kInput) {
    SIPHON_RETURN_IF_ERROR(kept.KeepForWeights(layer));
    return left > room.workspace.size() ? room.workspace.Resize(left) : absl::OkStatus();
  }
  kept.FreeUsed(layer);
  state_.Accumulate(layer, step_, microbatch);
  return absl::OkStatus();
}

absl::Status SyntheticStage::BackwardWeight(MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(order_.CheckBackwardWeight(microbatch));
  PacedWork work(worker_.clock);
  SIPHON_ASSIGN_OR_RETURN(const BookedBlock workspace,
                          Workspace(PassWorkspace(cost_, ActionKind::kBackwardWeight)));
  for (int layer = sizes_.stage.end - 1; layer >= sizes_.stage.begin; --layer) {
    SIPHON_RETURN_IF_ERROR(Enter(layer, /*gradients=*/true, work));
    SIPHON_RETURN_IF_ERROR(Kept(microbatch).Use(layer));
    work.Take(CostOf(layer).weight_backward);
    Kept(microbatch).Free(layer);
    state_.Accumulate(layer, step_, microbatch);
    SIPHON_RETURN_IF_ERROR(Leave(layer));
  }
  order_.DidBackwardWeight(microbatch);
  return absl::OkStatus();
}

std::vector<float> SyntheticStage::Losses() const {
  std::vector<float> losses;
  for (int microbatch = 0; position_.last && microbatch < order_.microbatches(); ++microbatch) {
    if (*order_.PhaseOf(MicrobatchId(microbatch)) == StageOrder::Phase::kWaiting) continue;
    losses.push_back(SyntheticNumber(
        SyntheticKey(SyntheticContent::kLoss, {.step = step_, .microbatch = microbatch})));
  }
  return losses;
}

absl::StatusOr<std::vector<SharedGradient>> SyntheticStage::SharedGradients() {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  return std::vector<SharedGradient>();
}

absl::StatusOr<std::vector<float>> SyntheticStage::GradientNorms() {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  return state_.GradientNorms();
}

absl::Status SyntheticStage::Step(const UpdateSettings& settings) {
  return StepLayers(settings, sizes_.stage);
}

absl::Status SyntheticStage::StepLayers(const UpdateSettings& settings, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  PacedWork work(worker_.clock);
  const int end = std::min(layers.end, sizes_.stage.end);
  for (int layer = std::max(layers.begin, sizes_.stage.begin); layer < end; ++layer) {
    if (state_.IsUpdated(layer)) continue;
    SIPHON_RETURN_IF_ERROR(state_.Update(layer, settings));
    work.Take(CostOf(layer).optimizer);
  }
  return absl::OkStatus();
}

absl::Status SyntheticStage::StepOnHost(const UpdateSettings& settings, StageRange layers,
                                        const std::vector<HostStepMemory>& memory) {
  SIPHON_RETURN_IF_ERROR(order_.CheckGradientsComplete());
  std::unique_lock<std::mutex> turn;
  if (worker_.host != nullptr) turn = std::unique_lock(*worker_.host);
  PacedWork work(worker_.clock);
  Bytes all;
  for (const StepTensor& tensor : state_.StepTensors()) all += tensor.state_bytes;
  for (const StepTensor& tensor : state_.StepTensors()) {
    const int layer = tensor.layer;
    if (tensor.stepped || layer < layers.begin || layers.end <= layer) continue;
    const size_t index = static_cast<size_t>(layer - sizes_.stage.begin);
    SIPHON_RETURN_IF_ERROR(state_.UpdateOnHost(layer, settings, memory[index]));
    if (all == Bytes(0)) continue;
    const absl::int128 part = absl::int128(worker_.host_step.value) * tensor.state_bytes.value;
    work.Take(Nanos(static_cast<int64_t>(part / all.value)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageCompute>> MakeSyntheticStage(
    const ModelProfile& profile, const StagePartition& partition, StageId stage,
    SyntheticWorker worker, const std::vector<StateGroup>& away) {
  if (stage.value < 0 || stage.value >= static_cast<int>(partition.stages.size())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no stage ", stage.value,
                                                   " in a partition of ", partition.stages.size()));
  }
  const int layers = static_cast<int>(profile.layers.size());
  const StageRange range = partition.stages[stage.value];
  if (range.begin < 0 || range.begin >= range.end || range.end > layers) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage.value, " has layers [",
                                                   range.begin, ", ", range.end,
                                                   ") of a profile of ", layers));
  }
  const StagePartition alone{.stages = {range}};
  SIPHON_ASSIGN_OR_RETURN(SyntheticState state,
                          SyntheticState::Make(profile, range, worker.ledger, away));
  SyntheticSizes sizes{
      .profile = &profile, .stage = range, .layers = std::move(LayerCosts(profile, alone)[0])};
  return std::make_unique<SyntheticStage>(std::move(sizes), StageCosts(profile, alone)[0],
                                          std::move(state), std::move(worker));
}

}  // namespace siphon
