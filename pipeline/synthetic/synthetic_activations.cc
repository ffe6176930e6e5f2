#include "pipeline/synthetic/synthetic_activations.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/synthetic/keyed_bytes.h"
#include "pipeline/synthetic/synthetic_keys.h"
#include "planner/status.h"
#include "planner/strategies/make_groups.h"

namespace siphon {
namespace {

bool Holds(const StageRange& layers, int layer) {
  return layer >= layers.begin && layer < layers.end;
}

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
  FillKeyed(block.bytes(), KeyOf(layer));
  return absl::OkStatus();
}

absl::Status SyntheticActivations::Check(int layer, const BookedBlock& block) const {
  const std::optional<size_t> differs = FirstDifference(block.bytes(), KeyOf(layer));
  if (!differs.has_value()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("activations of layer ", layer, ", microbatch ",
                                          microbatch_.value, ": byte ", *differs, " of ",
                                          block.size().value, " is not what was saved"));
}

absl::Status SyntheticActivations::Drop(StageRange layers) {
  const StageRange& stage = sizes_->stage;
  if (layers.begin < stage.begin || layers.begin >= layers.end || layers.end > stage.end) {
    return absl::InvalidArgumentError(absl::StrCat(
        TextOf(layers), " are not of this stage, which has [", stage.begin, ", ", stage.end, ")"));
  }
  for (const DroppedRange& dropped : dropped_) {
    if (dropped.group.layers.begin >= layers.end || layers.begin >= dropped.group.layers.end) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(TextOf(layers), " were dropped already"));
  }
  dropped_.push_back({.group = DroppedGroupOf(*sizes_->profile, stage, layers)});
  return absl::OkStatus();
}

absl::Status SyntheticActivations::Save(int layer) {
  for (DroppedRange& dropped : dropped_) {
    if (!Holds(dropped.group.layers, layer)) continue;
    if (layer != dropped.group.layers.begin) return absl::OkStatus();
    return Take(layer, dropped.group.input, dropped.stays);
  }
  return Take(layer, CostOf(layer).stash, saved_[Index(layer)]);
}

std::optional<StageRange> SyntheticActivations::FindDropped(int layer) const {
  for (const DroppedRange& dropped : dropped_) {
    if (Holds(dropped.group.layers, layer)) return dropped.group.layers;
  }
  return std::nullopt;
}

absl::Status SyntheticActivations::SaveAgain(StageRange layers) {
  const auto found =
      std::find_if(dropped_.begin(), dropped_.end(),
                   [&](const DroppedRange& dropped) { return dropped.group.layers == layers; });
  if (found == dropped_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(TextOf(layers), " of microbatch ", microbatch_.value, " were not dropped"));
  }
  SIPHON_RETURN_IF_ERROR(Check(layers.begin, found->stays));
  dropped_.erase(found);  // what stayed becomes part of what is saved now
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    SIPHON_RETURN_IF_ERROR(Take(layer, CostOf(layer).stash, saved_[Index(layer)]));
  }
  return absl::OkStatus();
}

absl::Status SyntheticActivations::Use(int layer) const {
  return Check(layer, saved_[Index(layer)]);
}

void SyntheticActivations::Free(int layer) { saved_[Index(layer)] = BookedBlock(); }

absl::Status SyntheticActivations::UseForInput(int layer) {
  SIPHON_RETURN_IF_ERROR(Use(layer));
  if (CostOf(layer).kept_for_weights <= CostOf(layer).stash) return absl::OkStatus();
  return KeepForWeights(layer);
}

absl::Status SyntheticActivations::KeepForWeights(int layer) {
  BookedBlock& block = saved_[Index(layer)];
  const Bytes kept = CostOf(layer).kept_for_weights;
  const bool grows = kept > block.size();
  SIPHON_RETURN_IF_ERROR(Annotate(
      block.Resize(kept),
      absl::StrCat("gradients queued at layer ", layer, ", microbatch ", microbatch_.value)));
  if (grows) FillKeyed(block.bytes(), KeyOf(layer));
  return absl::OkStatus();
}

}  // namespace siphon
