#include "pipeline/synthetic/synthetic_activations.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/synthetic/keyed_bytes.h"
#include "pipeline/synthetic/synthetic_keys.h"
#include "planner/lowering/make_groups.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::string TextOf(const StageRange& layers) {
  return absl::StrCat("layers [", layers.begin, ", ", layers.end, ")");
}

}  // namespace

SyntheticActivations::SyntheticActivations(const SyntheticSizes* sizes, MemoryLedger* ledger,
                                           int64_t step, MicrobatchId microbatch)
    : sizes_(sizes),
      ledger_(ledger),
      step_(step),
      microbatch_(microbatch),
      saved_(sizes->layers.size()) {}

uint64_t SyntheticActivations::KeyOf(int layer) const {
  return SyntheticKey(SyntheticContent::kSaved,
                      {.step = step_, .layer = layer, .microbatch = microbatch_.value});
}

absl::Status SyntheticActivations::Take(int layer, Bytes size, BookedBlock& block) const {
  absl::StatusOr<BookedBlock> taken = BookedBlock::Take(ledger_, size, MemoryKind::kActivations);
  if (!taken.ok()) {
    return Annotate(taken.status(),
                    absl::StrCat("layer ", layer, ", microbatch ", microbatch_.value));
  }
  block = *std::move(taken);
  return absl::OkStatus();
}

absl::Status SyntheticActivations::TakeAndFill(int layer, Bytes size, BookedBlock& block) const {
  SIPHON_RETURN_IF_ERROR(Take(layer, size, block));
  FillKeyed(block.bytes(), KeyOf(layer));
  return absl::OkStatus();
}

absl::Status SyntheticActivations::SaveWhole(int layer) {
  SavedLayer& saved = saved_[Index(layer)];
  saved.place = Place::kHere;
  return TakeAndFill(layer, CostOf(layer).stash, saved.block);
}

// What the layer saves behind its first bytes.
absl::Status SyntheticActivations::SaveRest(int layer, Bytes first) {
  const Bytes rest = CostOf(layer).stash - first;
  if (rest > Bytes(0)) return TakeAndFill(layer, rest, saved_[Index(layer)].rest);
  return absl::InvalidArgumentError(
      absl::StrCat("layer ", layer, " saves ", CostOf(layer).stash.value, " bytes, and the first ",
                   first.value, " of them are to leave alone"));
}

// Both blocks of a layer become one, which takes no more at any time.
absl::Status SyntheticActivations::Join(int layer) {
  SavedLayer& saved = saved_[Index(layer)];
  if (saved.rest.size() == Bytes(0)) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(Check(layer, saved.rest));
  saved.rest = BookedBlock();
  SIPHON_RETURN_IF_ERROR(saved.block.Resize(CostOf(layer).stash));
  FillKeyed(saved.block.bytes(), KeyOf(layer));
  return absl::OkStatus();
}

absl::Status SyntheticActivations::Check(int layer, const BookedBlock& block) const {
  const std::optional<size_t> differs = FirstDifference(block.bytes(), KeyOf(layer));
  if (!differs.has_value()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("activations of layer ", layer, ", microbatch ",
                                          microbatch_.value, ": byte ", *differs, " of ",
                                          block.size().value, " is not what was saved"));
}

absl::Status SyntheticActivations::CheckInStage(StageRange layers) const {
  const StageRange& stage = sizes_->stage;
  if (layers.begin >= stage.begin && layers.begin < layers.end && layers.end <= stage.end) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      TextOf(layers), " are not of this stage, which has [", stage.begin, ", ", stage.end, ")"));
}

absl::Status SyntheticActivations::CheckNotDropped(StageRange layers) const {
  for (const DroppedRange& dropped : dropped_) {
    if (!Overlap(dropped.group.layers, layers)) continue;
    return absl::FailedPreconditionError(absl::StrCat(TextOf(layers), " were dropped already"));
  }
  return absl::OkStatus();
}

absl::Status SyntheticActivations::CheckNotCollected(StageRange layers) const {
  for (const LayerTensors& collected : collected_) {
    if (!Overlap(collected.layers, layers)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(TextOf(layers), " are collected already, as ", TextOf(collected.layers)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorGroup> SyntheticActivations::GroupFor(const LayerTensors& tensors) const {
  const StageRange& layers = tensors.layers;
  if (tensors.first == Bytes(0)) {
    return GroupOf(*sizes_->profile, sizes_->stage, GroupKind::kActivations, layers);
  }
  for (const int count : FirstTensorsOf(sizes_->profile->layers[layers.begin])) {
    TensorGroup group = FirstTensorsGroup(*sizes_->profile, layers.begin, count);
    if (group.bytes == tensors.first) return group;
  }
  return absl::InvalidArgumentError(absl::StrCat("layer ", layers.begin,
                                                 " saves no tensors first that have ",
                                                 tensors.first.value, " bytes together"));
}

absl::Status SyntheticActivations::Drop(const LayerTensors& tensors) {
  const StageRange& layers = tensors.layers;
  SIPHON_RETURN_IF_ERROR(CheckInStage(layers));
  SIPHON_RETURN_IF_ERROR(CheckNotCollected(layers));
  SIPHON_RETURN_IF_ERROR(CheckNotDropped(layers));
  SIPHON_ASSIGN_OR_RETURN(TensorGroup group, GroupFor(tensors));
  dropped_.push_back({.group = std::move(group)});
  return absl::OkStatus();
}

absl::Status SyntheticActivations::Collect(const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(CheckInStage(tensors.layers));
  SIPHON_RETURN_IF_ERROR(CheckNotDropped(tensors.layers));
  SIPHON_RETURN_IF_ERROR(CheckNotCollected(tensors.layers));
  SIPHON_RETURN_IF_ERROR(GroupFor(tensors).status());
  collected_.push_back(tensors);
  return absl::OkStatus();
}

std::optional<StageRange> SyntheticActivations::FindCollected(int layer) const {
  for (const LayerTensors& collected : collected_) {
    if (collected.layers.end == layer + 1) return collected.layers;
  }
  return std::nullopt;
}

absl::Status SyntheticActivations::CheckCollectedAndSaved(StageRange layers) const {
  const bool collected =
      std::any_of(collected_.begin(), collected_.end(),
                  [&](const LayerTensors& tensors) { return tensors.layers == layers; });
  if (collected && saved_[Index(layers.end - 1)].place != Place::kNowhere) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(TextOf(layers), " were not collected by a forward pass"));
}

absl::StatusOr<TensorSpans> SyntheticActivations::CollectedTensors(StageRange layers) const {
  SIPHON_RETURN_IF_ERROR(CheckCollectedAndSaved(layers));
  TensorSpans spans;
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    spans.push_back(saved_[Index(layer)].block.bytes());
  }
  return spans;
}

absl::Status SyntheticActivations::FreeCollected(StageRange layers) {
  SIPHON_RETURN_IF_ERROR(CheckCollectedAndSaved(layers));
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    saved_[Index(layer)].place = Place::kAway;
    saved_[Index(layer)].block = BookedBlock();
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorSpans> SyntheticActivations::RefillCollected(StageRange layers) {
  SIPHON_RETURN_IF_ERROR(CheckCollectedAndSaved(layers));
  TensorSpans spans;
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    SavedLayer& saved = saved_[Index(layer)];
    if (saved.place != Place::kAway) {
      spans.emplace_back();
      continue;
    }
    const Bytes away = CostOf(layer).stash - saved.rest.size();
    SIPHON_RETURN_IF_ERROR(Take(layer, away, saved.block));
    saved.place = Place::kHere;
    spans.push_back(saved.block.bytes());
  }
  return spans;
}

absl::Status SyntheticActivations::Save(int layer) {
  for (DroppedRange& dropped : dropped_) {
    if (!Contains(dropped.group.layers, layer)) continue;
    if (layer != dropped.group.layers.begin) return absl::OkStatus();
    SIPHON_RETURN_IF_ERROR(Take(layer, dropped.group.input, dropped.stays));
    FillKeyed(dropped.stays.bytes(), KeyOf(layer));
    const bool whole = dropped.group.first_tensors == 0;
    return whole ? absl::OkStatus() : SaveRest(layer, dropped.group.bytes);
  }
  for (const LayerTensors& collected : collected_) {
    if (!Contains(collected.layers, layer) || collected.first == Bytes(0)) continue;
    SIPHON_RETURN_IF_ERROR(SaveRest(layer, collected.first));
    saved_[Index(layer)].place = Place::kHere;
    return TakeAndFill(layer, collected.first, saved_[Index(layer)].block);
  }
  return SaveWhole(layer);
}

std::optional<StageRange> SyntheticActivations::FindDropped(int layer) const {
  for (const DroppedRange& dropped : dropped_) {
    if (Contains(dropped.group.layers, layer)) return dropped.group.layers;
  }
  return std::nullopt;
}

absl::StatusOr<Nanos> SyntheticActivations::SaveAgain(StageRange layers) {
  const auto found =
      std::find_if(dropped_.begin(), dropped_.end(),
                   [&](const DroppedRange& dropped) { return dropped.group.layers == layers; });
  if (found == dropped_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(TextOf(layers), " of microbatch ", microbatch_.value, " were not dropped"));
  }
  SIPHON_RETURN_IF_ERROR(Check(layers.begin, found->stays));
  const Nanos time = found->group.recompute;
  dropped_.erase(found);  // what stayed becomes part of what is saved now
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    SavedLayer& saved = saved_[Index(layer)];
    const Bytes again = CostOf(layer).stash - saved.rest.size();
    saved.place = Place::kHere;
    SIPHON_RETURN_IF_ERROR(TakeAndFill(layer, again, saved.block));
  }
  return time;
}

absl::Status SyntheticActivations::Use(int layer) {
  const SavedLayer& saved = saved_[Index(layer)];
  if (saved.place == Place::kHere) {
    SIPHON_RETURN_IF_ERROR(Check(layer, saved.block));
    return Join(layer);
  }
  return absl::FailedPreconditionError(absl::StrCat("activations of layer ", layer, ", microbatch ",
                                                    microbatch_.value,
                                                    " are away, and needed now"));
}

SyntheticActivations::SavedLayer* SyntheticActivations::LayerBehind(int layer) {
  return layer + 1 < sizes_->stage.end ? &saved_[Index(layer + 1)] : nullptr;
}

void SyntheticActivations::FreeUsed(int layer) {
  if (SavedLayer* const behind = LayerBehind(layer); behind != nullptr) *behind = SavedLayer();
  const absl::Status smaller = saved_[Index(layer)].block.Resize(CostOf(layer).shared_before);
  SIPHON_CHECK(smaller.ok(),
               "a tensor that two layers save is a part of what the second one saves");
}

bool SyntheticActivations::NeedsMoreForWeights(int layer) const {
  return CostOf(layer).kept_for_weights >
         FreedByBackward(sizes_->layers, static_cast<int>(Index(layer)));
}

absl::Status SyntheticActivations::UseForInput(int layer) {
  SIPHON_RETURN_IF_ERROR(Use(layer));
  return NeedsMoreForWeights(layer) ? ReplaceByKept(layer) : absl::OkStatus();
}

absl::Status SyntheticActivations::KeepForWeights(int layer) {
  return NeedsMoreForWeights(layer) ? absl::OkStatus() : ReplaceByKept(layer);
}

absl::Status SyntheticActivations::ReplaceByKept(int layer) {
  if (SavedLayer* const behind = LayerBehind(layer); behind != nullptr) {
    SIPHON_RETURN_IF_ERROR(behind->block.Resize(CostOf(layer + 1).kept_for_weights));
  }
  BookedBlock& block = saved_[Index(layer)].block;
  const Bytes kept = CostOf(layer).kept_for_weights + CostOf(layer).shared_before;
  const bool grows = kept > block.size();
  SIPHON_RETURN_IF_ERROR(Annotate(
      block.Resize(kept),
      absl::StrCat("gradients queued at layer ", layer, ", microbatch ", microbatch_.value)));
  if (grows) FillKeyed(block.bytes(), KeyOf(layer));
  return absl::OkStatus();
}

}  // namespace siphon
