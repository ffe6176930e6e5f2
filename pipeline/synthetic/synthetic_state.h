#ifndef SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STATE_H_
#define SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STATE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/synthetic/booked_block.h"
#include "pipeline/synthetic/synthetic_keys.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "swap/memory_ledger.h"

namespace siphon {

// Parameters, gradients and optimizer state of a stage's layers, as the bytes that the profile has
// for them. What they hold follows from all that has happened: the gradients that were added up, in
// whatever order, and the settings of each update.
//
// Thread-safety: one thread.
class SyntheticState final : public StateMemory {
 public:
  // The profile and the ledger outlive it. The groups of `away` are freed. Errors:
  // ResourceExhausted.
  static absl::StatusOr<SyntheticState> Make(const ModelProfile& profile, const StageRange& stage,
                                             MemoryLedger* ledger,
                                             const std::vector<StateGroup>& away);

  // A step begins: no gradients yet, nothing is updated.
  void BeginStep();
  bool IsUpdated(int layer) { return At(layer).updated; }
  // The microbatch's weight gradients of the layer (of the model).
  void Accumulate(int layer, int64_t step, MicrobatchId microbatch);
  // One number a layer, which stands for the norm of its gradient.
  std::vector<float> GradientNorms() const;

  // That a pass finds the layer's parameters, and its gradients where it adds to them. Errors:
  // FailedPrecondition, naming what is away.
  absl::Status CheckThere(int layer, bool gradients) const;
  // Errors: DataLoss when the layer's bytes are not what they were left as.
  absl::Status Update(int layer, const UpdateSettings& settings);
  // As StageCompute says: one parameter a layer.
  std::vector<StepTensor> StepTensors();
  void KeepOnHost(const TensorSpans& memory);
  // Update, with parameters and gradients there.
  absl::Status UpdateOnHost(int layer, const UpdateSettings& settings,
                            const HostStepMemory& memory);
  // Live views, layer by layer: parameters, then the optimizer's state as the first moment, each
  // named by its layer. (What is written into them is not understood.)
  std::vector<StateTensor> State();

  absl::StatusOr<TensorSpans> Tensors(const StateGroup& group) override;
  absl::Status Free(const StateGroup& group) override;
  absl::StatusOr<TensorSpans> Refill(const StateGroup& group) override;
  absl::Status Initialise(const StateGroup& group) override;

 private:
  struct LayerState {
    std::array<BookedBlock, 3> blocks;  // in the order of kStateKinds
    absl::Span<std::byte> host_state;   // the optimizer's, where it lives on the host
    uint64_t history = 0;               // of all updates
    bool updated = false;               // in this step
    uint64_t gradient = 0;              // sum over the microbatches so far, wrapping around
  };

  SyntheticState(const ModelProfile* profile, const StageRange& stage, MemoryLedger* ledger)
      : profile_(profile), stage_(stage), ledger_(ledger) {}
  LayerState& At(int layer) { return layers_[static_cast<size_t>(layer - stage_.begin)]; }
  Bytes SizeOf(int layer, GroupKind kind) const;
  BookedBlock& BlockOf(int layer, GroupKind kind);
  // Empty while they are freed.
  absl::Span<std::byte> BytesAt(int layer, GroupKind kind) const;
  absl::Status Take(int layer, GroupKind kind);
  void Fill(int layer, GroupKind kind) { Fill(layer, kind, BytesAt(layer, kind)); }
  void Fill(int layer, GroupKind kind, absl::Span<std::byte> bytes);
  absl::Status CheckThere(int layer, GroupKind kind) const;
  absl::Status CheckBytes(int layer, GroupKind kind, absl::Span<const std::byte> bytes) const;
  void NoteUpdate(int layer, const UpdateSettings& settings);

  const ModelProfile* profile_;
  StageRange stage_;
  MemoryLedger* ledger_;
  std::vector<LayerState> layers_;  // [layer of the stage]
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STATE_H_
