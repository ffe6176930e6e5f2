#ifndef SIPHON_PIPELINE_STAGE_COMPUTE_H_
#define SIPHON_PIPELINE_STAGE_COMPUTE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipeline/state_memory.h"
#include "planner/ids.h"
#include "planner/stage_partition.h"
#include "planner/tensor_spec.h"

namespace siphon {

// One microbatch of data: contiguous, 64-byte aligned, owned by whoever made it and valid for the
// whole step.
struct MicrobatchData {
  TensorSpec input_spec;   // [microbatch, ...sample]
  TensorSpec target_spec;  // [microbatch, ...sample], I64
  absl::Span<const std::byte> input;
  absl::Span<const std::byte> target;
};

enum class StepMode {
  kTrain,
  kEvaluate
};  // evaluate: no dropout, no gradients, nothing kept after forward

struct StepInputs {
  int64_t step = 0;  // from 0; part of every random key
  StepMode mode = StepMode::kTrain;
  int64_t target_count = 1;  // targets in the global batch: the loss's denominator
  // Every gradient comes out times this; losses do not.
  float loss_scale = 1;
  std::vector<MicrobatchData> microbatches;
};

// The four boundaries of a stage, for one microbatch.
enum class Boundary {
  kInput,           // activations from the previous stage; filled by a receive
  kOutput,          // activations for the next stage; made by Forward
  kOutputGradient,  // from the next stage; filled by a receive
  kInputGradient,   // for the previous stage; made by Backward or BackwardInput
};

// "input", "gradient of the output", ... for messages.
constexpr absl::string_view BoundaryName(Boundary boundary) {
  switch (boundary) {
    case Boundary::kInput:
      return "input";
    case Boundary::kOutput:
      return "output";
    case Boundary::kOutputGradient:
      return "gradient of the output";
    case Boundary::kInputGradient:
      return "gradient of the input";
  }
  return "unknown boundary";
}

// A gradient of one use of a parameter that several stages share, accumulated over the step's
// microbatches.
struct SharedGradient {
  std::string parameter;
  int layer = 0;                // of the use
  absl::Span<std::byte> bytes;  // this stage's own, or room to receive another stage's
};

struct UpdateSettings {
  int64_t update = 1;  // number of this optimizer step, from 1 (Adam's bias correction)
  double learning_rate = 0;
  float gradient_scale = 1;  // clipping factor over the loss scale, applied once
  // The gradients are no numbers: everything goes as in a step, and no value changes.
  bool skipped = false;
};

// A parameter as an optimizer step sees it. All sizes are of one parameter.
struct StepTensor {
  int layer = 0;         // whose StateGroups it goes with
  bool moves = false;    // it, and its gradient, are in those: one layer alone uses it
  bool stepped = false;  // in this step
  Bytes parameter_bytes;
  Bytes gradient_bytes;
  Bytes state_bytes;  // of the optimizer's tensors together, each at a multiple of 64 bytes
  // Empty while it is freed; the gradient also until it is summed up (GradientNorms).
  absl::Span<std::byte> parameter;
  absl::Span<std::byte> gradient;
};

// Memory on the host for the same. Empty: the parameter is not stepped.
struct HostStepMemory {
  absl::Span<std::byte> parameter;  // what it is, and then what it becomes
  absl::Span<std::byte> gradient;   // the sum; not kept
};

// A tensor of the training state, for checkpoints. Several kinds share a parameter's name.
struct StateTensor {
  enum class Kind {
    kParameter,  // as layers compute with it
    kMaster,     // of one that they compute with in 16 bits: float32, of which that is rounded
    kFirstMoment,
    kSecondMoment,
  };
  std::string name;  // of the parameter
  Kind kind = Kind::kParameter;
  bool owned = true;  // false: a tied parameter that an earlier stage writes to the checkpoint
  int layer = 0;      // whose StateGroup it goes with, where that is away
  TensorSpec spec;
  // The live memory; written to when a checkpoint is loaded. Empty while it is freed.
  absl::Span<std::byte> bytes;
  bool on_host = true;  // else a device's: StageCompute::CopyToHost, CopyFromHost
};

// What layers save for their backward, and what of it is dropped, or can be away.
struct LayerTensors {
  StageRange layers;  // of the model; consecutive, of one stage
  // Of one layer: only what it saves first, so many bytes together. 0: all of it.
  Bytes first = Bytes(0);
};

// Is told what happens in the middle of a pass.
class PassWatch {
 public:
  virtual ~PassWatch() = default;
  // A pass comes to a layer, and is through it: F from the stage's first layer to its last, B, I
  // and W from the last to the first. In between the layer's parameters, and where the pass adds to
  // them its gradients, are there.
  virtual absl::Status Enter(int layer) = 0;
  virtual absl::Status Leave(int layer) = 0;
  // Around dropped layers that a backward computes again; their parameters are there.
  virtual absl::Status BeginRecompute(MicrobatchId microbatch, StageRange layers) = 0;
  virtual void EndRecompute() = 0;
  // A forward has gone through collected layers: all that they save for their backward is there.
  virtual absl::Status Saved(MicrobatchId microbatch, StageRange layers) = 0;
  // A backward comes to the last of collected layers: after this all that they saved is there.
  virtual absl::Status Need(MicrobatchId microbatch, StageRange layers) = 0;
};

// What a worker needs to know of the numbers of one stage. Everything about memory and order stays
// with the caller.
//
// Thread-safety: one thread, the worker's. Errors: Internal when the library underneath fails,
// ResourceExhausted when the worker's memory is full, FailedPrecondition when actions come in an
// impossible order.
class StageCompute {
 public:
  virtual ~StageCompute() = default;

  // Starts a step (or an evaluation). `inputs` and what it points to stay valid until the step's
  // last action.
  virtual absl::Status BeginStep(const StepInputs& inputs) = 0;
  // Until the next call; null: nobody watches.
  virtual void Watch(PassWatch* watch) = 0;

  // Memory of a boundary. kInput and kOutputGradient are allocated by the first call, to be filled
  // before Forward or Backward (or BackwardInput) of that microbatch, which take them over. kOutput
  // and kInputGradient exist from Forward or Backward (or BackwardInput) until Release.
  // FailedPrecondition where there is nothing yet, or nothing more.
  virtual absl::StatusOr<TensorSpans> Buffers(Boundary boundary, MicrobatchId microbatch) = 0;
  // Drops kOutput once it was sent, kInputGradient likewise.
  virtual absl::Status Release(Boundary boundary, MicrobatchId microbatch) = 0;

  virtual absl::Status Forward(MicrobatchId microbatch) = 0;
  // Before Forward of the microbatch: of these tensors it keeps only the input of the first layer.
  // Backward and BackwardInput compute them again, with the same bits, when they come to the last
  // layer; Recompute does so at once. Each layer can be dropped once a step and microbatch. Forward
  // and Recompute fail with InvalidArgument where the layer does not save first what it should.
  virtual absl::Status Drop(MicrobatchId microbatch, const LayerTensors& tensors) = 0;
  virtual absl::Status Recompute(MicrobatchId microbatch, StageRange layers) = 0;

  // Before Forward of the microbatch: these tensors (as for Drop, of layers that are not dropped)
  // can be away until the backward. Forward fails as for Drop.
  virtual absl::Status Collect(MicrobatchId microbatch, const LayerTensors& tensors) = 0;
  // From PassWatch::Saved on: memory of what was collected of these layers, each tensor's once,
  // in the order of saving. A tensor that layers behind them save too goes with those.
  virtual absl::StatusOr<TensorSpans> SavedTensors(MicrobatchId microbatch, StageRange layers) = 0;
  // From then on: frees that memory; who has its contents brings it back before PassWatch::Need
  // returns. What a boundary still uses is freed when that is released.
  virtual absl::Status FreeSaved(MicrobatchId microbatch, StageRange layers) = 0;
  // Takes the memory again, its contents unknown. As SavedTensors, empty for a tensor whose memory
  // was not freed.
  virtual absl::StatusOr<TensorSpans> RefillSaved(MicrobatchId microbatch, StageRange layers) = 0;

  // Makes kInputGradient and adds the microbatch's weight gradients to the sums of this step.
  virtual absl::Status Backward(MicrobatchId microbatch) = 0;
  // Backward in two halves, with the same bits: the first makes kInputGradient and keeps no more
  // activations than the weight gradients need, the second adds those to the sums. Sums grow in the
  // order in which microbatches come to Backward or BackwardWeight.
  virtual absl::Status BackwardInput(MicrobatchId microbatch) = 0;
  virtual absl::Status BackwardWeight(MicrobatchId microbatch) = 0;

  // The losses of the microbatches so far, ascending; empty unless this is the last stage.
  virtual std::vector<float> Losses() const = 0;

  // All uses of shared parameters in layer order, other stages' included (their spans are to be
  // filled). Then AddSharedGradients sums them, once, in that order, into this stage's gradient.
  virtual absl::StatusOr<std::vector<SharedGradient>> SharedGradients() = 0;
  virtual absl::Status AddSharedGradients() = 0;

  // 2-norm of the gradient of each parameter that this stage owns, fp32, in canonical order. What
  // one layer alone uses need not be there any more: its norm is known from its last microbatch on.
  virtual absl::StatusOr<std::vector<float>> GradientNorms() = 0;
  // Updates every parameter held here (tied copies too, with equal bits) that no StepLayers has
  // updated in this step, and clears the gradients.
  virtual absl::Status Step(const UpdateSettings& settings) = 0;
  // The same for the parameters whose optimizer state goes with these layers.
  virtual absl::Status StepLayers(const UpdateSettings& settings, StageRange layers) = 0;

  // All parameters here, in canonical order.
  virtual std::vector<StepTensor> StepTensors() = 0;
  // Before the first step: optimizer state starts, and lives, in this memory of the host, which
  // outlives the stage. One span of state_bytes for each of StepTensors, 64-byte aligned. Requires:
  // the stage was made with all of it freed.
  virtual absl::Status KeepStateOnHost(const TensorSpans& memory) = 0;
  // StepLayers with the same bits, on the host: `memory` has one entry for each of StepTensors.
  // Values here stay as they are.
  virtual absl::Status StepOnHost(const UpdateSettings& settings, StageRange layers,
                                  const std::vector<HostStepMemory>& memory) = 0;

  // For spans that a stage gives out and the host may not be able to touch: `own` is this stage's
  // memory, `other` that of one of the same worker; both sides have one size. Done when they
  // return.
  virtual absl::Status CopyToHost(absl::Span<const std::byte> own, absl::Span<std::byte> host) {
    return CopyWithin(own, host);
  }
  virtual absl::Status CopyFromHost(absl::Span<const std::byte> host, absl::Span<std::byte> own) {
    return CopyWithin(host, own);
  }
  virtual absl::Status CopyWithin(absl::Span<const std::byte> other, absl::Span<std::byte> own) {
    if (!other.empty()) std::memcpy(own.data(), other.data(), other.size());
    return absl::OkStatus();
  }

  // Live views of parameters and moments, in canonical order.
  virtual std::vector<StateTensor> State() = 0;
  // Lives as long as this.
  virtual StateMemory& state_memory() = 0;
  // Microbatches now held between Forward and the end of Backward or BackwardWeight.
  virtual int LiveMicrobatches() const = 0;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STAGE_COMPUTE_H_
