#ifndef SIPHON_LAUNCH_RUN_LAYER_PROFILE_LAYER_RIG_H_
#define SIPHON_LAUNCH_RUN_LAYER_PROFILE_LAYER_RIG_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/device/step_clock.h"
#include "planner/model_profile.h"
#include "swap/memory_ledger.h"

namespace siphon {

// How a backward pass is run: whole, or as I and W.
enum class BackwardMode { kWhole, kSplit };
// Whether what a forward saves stays until the backward, or is computed again for it: all, or what
// the layer saves first, each number of tensors that can be without the others in turn.
enum class SavedMode { kKept, kRemade, kFirstRemade };
// Whether times and bytes of a pass are written down.
enum class Noting { kOff, kOn };

// One layer of a job as a stage of its own, which passes are timed and weighed on. Its tensors are
// on a ledger of its own.
//
// Thread-safety: one thread, which has called SetTorchThreads.
class LayerRig {
 public:
  // Errors: as of MakeTorchStage.
  static absl::StatusOr<std::unique_ptr<LayerRig>> Make(const PreparedJob& job,
                                                        const StagePartition& single_layers,
                                                        int layer);

  absl::Status BeginStep(const StepInputs& inputs);
  // One pass of a microbatch. `before` is the rig of the layer before (null for the first), whose
  // output this one takes; `after` the one behind (null for the last), whose gradient this one
  // takes.
  absl::Status Forward(MicrobatchId microbatch, LayerRig* before, SavedMode saved, Noting noted);
  // Between them, where `saved` was not kKept.
  absl::Status Recompute(MicrobatchId microbatch, Noting noted);
  absl::Status Backward(MicrobatchId microbatch, LayerRig* after, BackwardMode kind, Noting noted);
  // The optimizer step with the norms of the gradients before it.
  absl::Status Step(int64_t update, Noting noted);

  // Medians of the times, and the bytes, that were noted.
  LayerProfile Profile() const;

 private:
  // On the ledgers around a forward pass, beyond resting_.
  struct ForwardBytes {
    Bytes peak;    // without the input
    Bytes end;     // with the output, and what was saved of the input
    Bytes output;  // all of it, wherever it is
  };
  struct Times {
    std::vector<int64_t> forward_ns;
    std::vector<int64_t> recompute_ns;
    std::vector<std::vector<int64_t>> first_ns;  // the same of each of firsts_
    std::vector<int64_t> whole_ns;
    std::vector<int64_t> input_ns;
    std::vector<int64_t> weight_ns;
    std::vector<int64_t> step_ns;
  };

  static constexpr size_t kAll = static_cast<size_t>(-1);

  LayerRig(const PreparedJob& job, int layer);
  // When each tensor is made again, as measured; as the model says where it was not.
  void SetMade(LayerProfile& profile) const;
  // Bytes of a forward pass whose output was taken, with `stash` left for the backward,
  // `saved_input` of it the input.
  void NoteForwardBytes(Bytes stash, Bytes saved_input);
  absl::StatusOr<Bytes> OutputBytes(MicrobatchId microbatch);
  Bytes Used() const { return ledger_->used() + input_ledger_->used() - resting_; }
  // Fills the boundary `to` of this rig with `from` of its neighbour, and lets that one go.
  absl::Status Receive(Boundary to, LayerRig& neighbour, Boundary from, MicrobatchId microbatch);
  const LayerSpec& Spec() const { return job_.model.spec.layers[layer_]; }

  const PreparedJob& job_;
  const int layer_;
  const StepClock clock_;
  const std::vector<SavedTensor> listed_;  // what the model says that the layer saves
  const std::vector<int> firsts_;          // FirstTensorsOf that
  std::shared_ptr<MemoryLedger> ledger_;
  std::shared_ptr<MemoryLedger> input_ledger_;  // of inputs, to see what a pass keeps of them
  std::unique_ptr<StageCompute> stage_;
  Bytes resting_;  // on the ledger before the microbatch that is under way
  ForwardBytes forward_bytes_;
  Times times_;
  size_t turn_ = 0;        // of firsts_, to be dropped next
  size_t dropped_ = kAll;  // of firsts_, by the latest forward
  LayerProfile sizes_;
  bool is_listed_ = false;  // sizes_.saved begins with listed_
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_LAYER_PROFILE_LAYER_RIG_H_
