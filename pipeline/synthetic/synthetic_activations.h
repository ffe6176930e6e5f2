#ifndef SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_ACTIVATIONS_H_
#define SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_ACTIVATIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/stage_compute.h"
#include "pipeline/synthetic/booked_block.h"
#include "planner/ids.h"
#include "planner/layer_cost.h"
#include "planner/memory_plan.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "swap/memory_ledger.h"

namespace siphon {

// The sizes by which a stage's layers take memory. Immutable; the profile outlives it.
struct SyntheticSizes {
  const ModelProfile* profile = nullptr;
  StageRange stage;
  std::vector<LayerCost> layers;  // [layer of the stage]
};

// What a stage keeps of one microbatch from its forward pass to its backward pass: for each layer
// the bytes that the profile has for it, what two layers save once (planner/layer_cost.h); for
// layers that were dropped, what stays of them as a group (planner/lowering/make_groups.h). Where
// only what a layer saves first leaves, that is a block of its own until the backward. All of it is
// filled with bytes that nobody else has, and looked at before it goes.
//
// Layers are numbered as in the model. Thread-safety: one thread. Errors: ResourceExhausted when
// the books are full, DataLoss when something else is found than was kept, each with the layer and
// the microbatch.
class SyntheticActivations {
 public:
  // `sizes` and `ledger` outlive it.
  SyntheticActivations(const SyntheticSizes* sizes, MemoryLedger* ledger, int64_t step,
                       MicrobatchId microbatch);

  // From now on Save takes of `layers` only what stays of them. Errors: InvalidArgument for layers
  // outside the stage, FailedPrecondition where one of them is dropped already.
  absl::Status Drop(const LayerTensors& tensors);
  // What these layers save, or what one of them saves first, can be away from their forward pass to
  // their backward pass. Errors: as for Drop; FailedPrecondition where one of them is collected
  // already.
  absl::Status Collect(const LayerTensors& tensors);
  // The forward pass comes to the layer.
  absl::Status Save(int layer);

  // The layers that were dropped together with this one, and are not there since.
  std::optional<StageRange> FindDropped(int layer) const;
  // They are computed again; how long that takes. Errors: FailedPrecondition when exactly these
  // were not dropped.
  absl::StatusOr<Nanos> SaveAgain(StageRange layers);

  // The collected layers of which it is the last.
  std::optional<StageRange> FindCollected(int layer) const;
  // As StageCompute's SavedTensors, FreeSaved and RefillSaved: a tensor a layer. Errors also:
  // FailedPrecondition when exactly these were not collected and saved.
  absl::StatusOr<TensorSpans> CollectedTensors(StageRange layers) const;
  absl::Status FreeCollected(StageRange layers);
  absl::StatusOr<TensorSpans> RefillCollected(StageRange layers);

  // The backward pass uses what is there. What it is the last one to use goes when it is through: a
  // tensor that the layer before saves too stays for that one's backward. Errors also:
  // FailedPrecondition when it is away.
  absl::Status Use(int layer);
  void FreeUsed(int layer);
  // The same for the input half: what the weight half needs takes its place, when the half begins
  // where that is more, and when it ends where it is less.
  absl::Status UseForInput(int layer);
  absl::Status KeepForWeights(int layer);
  // The weight half is through.
  void Free(int layer) { saved_[Index(layer)] = SavedLayer(); }

 private:
  enum class Place { kNowhere, kHere, kAway };  // kNowhere: before Save and after Free
  struct SavedLayer {
    Place place = Place::kNowhere;
    BookedBlock block;  // of what leaves, or all
    BookedBlock rest;   // what stays while that is away
  };
  struct DroppedRange {
    TensorGroup group;
    BookedBlock stays;
  };

  const LayerCost& CostOf(int layer) const { return sizes_->layers[Index(layer)]; }
  size_t Index(int layer) const { return static_cast<size_t>(layer - sizes_->stage.begin); }
  absl::Status Take(int layer, Bytes size, BookedBlock& block) const;
  bool NeedsMoreForWeights(int layer) const;
  absl::Status ReplaceByKept(int layer);
  SavedLayer* LayerBehind(int layer);
  // Errors: InvalidArgument where the layer has no such first tensors.
  absl::StatusOr<TensorGroup> GroupFor(const LayerTensors& tensors) const;
  absl::Status TakeAndFill(int layer, Bytes size, BookedBlock& block) const;
  absl::Status SaveWhole(int layer);
  absl::Status SaveRest(int layer, Bytes first);
  absl::Status Join(int layer);
  absl::Status Check(int layer, const BookedBlock& block) const;
  absl::Status CheckInStage(StageRange layers) const;
  absl::Status CheckNotDropped(StageRange layers) const;
  absl::Status CheckNotCollected(StageRange layers) const;
  absl::Status CheckCollectedAndSaved(StageRange layers) const;
  uint64_t KeyOf(int layer) const;

  const SyntheticSizes* const sizes_;
  MemoryLedger* const ledger_;
  const int64_t step_;
  const MicrobatchId microbatch_;
  std::vector<SavedLayer> saved_;  // [layer of the stage]
  std::vector<LayerTensors> collected_;
  std::vector<DroppedRange> dropped_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_ACTIVATIONS_H_
