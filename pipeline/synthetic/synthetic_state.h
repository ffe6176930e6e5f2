#ifndef SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STATE_H_
#define SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STATE_H_

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
class SyntheticState {
 public:
  // The profile and the ledger outlive it. Errors: ResourceExhausted.
  static absl::StatusOr<SyntheticState> Make(const ModelProfile& profile, const StageRange& stage,
                                             MemoryLedger* ledger);

  // No gradients yet.
  void ClearGradients();
  // The microbatch's weight gradients of the layer (of the model).
  void Accumulate(int layer, int64_t step, MicrobatchId microbatch);
  // One number a layer, which stands for the norm of its gradient.
  std::vector<float> GradientNorms() const;

  // Errors: DataLoss when the layer's bytes are not what they were left as.
  absl::Status Update(int layer, const UpdateSettings& settings);
  // Live views, layer by layer: parameters, then the optimizer's state as the first moment, each
  // named by its layer. (What is written into them is not understood.)
  std::vector<StateTensor> State();

 private:
  struct LayerState {
    BookedBlock parameters;
    BookedBlock gradients;
    BookedBlock optimizer_state;
    uint64_t history = 0;   // of all updates
    uint64_t gradient = 0;  // sum over the microbatches so far, wrapping around
  };

  SyntheticState(const ModelProfile* profile, const StageRange& stage)
      : profile_(profile), stage_(stage) {}
  LayerState& At(int layer) { return layers_[static_cast<size_t>(layer - stage_.begin)]; }
  static uint64_t KeyOf(SyntheticContent content, const LayerState& state);
  void Fill(LayerState& state);
  absl::Status Check(int layer, const LayerState& state) const;

  const ModelProfile* profile_;
  StageRange stage_;
  std::vector<LayerState> layers_;  // [layer of the stage]
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STATE_H_
