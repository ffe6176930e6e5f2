#ifndef SIPHON_TESTS_PIPELINE_FAKE_STAGE_H_
#define SIPHON_TESTS_PIPELINE_FAKE_STAGE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage_compute.h"
#include "planner/ids.h"
#include "planner/stage_partition.h"
#include "tests/pipeline/fake_state_memory.h"

namespace siphon {

// A stage with numbers small enough to check by hand, strict about order and memory.
//
// Forward:  output = input + (stage + 1), where stage 0's input is microbatch + 1. The last stage's
// output is its loss. Backward: the last stage starts from 1; gradient of the input = gradient of
// the output + 10 * (stage + 1). Parameter: one, starting at 0; its gradient is the sum over
// microbatches of the gradient of the output. Step:     parameter -= learning rate * scale *
// gradient. Shared parameters: each use's own gradient is (layer + 1) * number of backwards; their
// sum is added to the gradient.
class FakeStage : public StageCompute {
 public:
  FakeStage(StageId stage, int stages, std::vector<SharedParameter> shared);

  // The next call that can fail does, with Internal "injected".
  void FailNext() { fail_next_ = true; }

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
  absl::Status AddSharedGradients() override;
  absl::StatusOr<std::vector<float>> GradientNorms() override;
  absl::Status Step(const UpdateSettings& settings) override;
  absl::Status StepLayers(const UpdateSettings& settings, StageRange layers) override;
  std::vector<StepTensor> StepTensors() override;
  absl::Status KeepStateOnHost(const TensorSpans& memory) override;
  absl::Status StepOnHost(const UpdateSettings& settings, StageRange layers,
                          const std::vector<HostStepMemory>& memory) override;
  std::vector<StateTensor> State() override { return {}; }
  FakeStateMemory& state_memory() override { return state_memory_; }
  int LiveMicrobatches() const override {
    return static_cast<int>(live_.size() + half_done_.size());
  }

  // Boundary buffers that exist now.
  int buffers() const { return static_cast<int>(buffers_.size()); }
  float parameter() const { return parameter_; }
  const std::vector<UpdateSettings>& updates() const { return updates_; }
  // Of each StepLayers, in order.
  const std::vector<StageRange>& stepped_layers() const { return stepped_layers_; }
  // "drop 2 [0, 1)", "recompute 2 [0, 1)": what was asked for, in order, of all steps.
  const std::vector<std::string>& memory_calls() const { return memory_calls_; }
  // Tensors that collected layers have saved and that are in memory now.
  int saved_tensors() const;
  // Microbatches of the last step in the order in which their gradients were added.
  const std::vector<int>& accumulated() const { return accumulated_; }

 private:
  struct Use {
    std::string parameter;
    int layer = 0;
    bool own = false;
    std::vector<float> gradient;
  };
  // A boundary has three tensors, the second of them empty; the size of the last depends on the
  // stage before it.
  struct Tensors {
    std::vector<float> first, empty, last;
  };
  using Key = std::pair<Boundary, int /*microbatch*/>;

  // Collected layers of a microbatch: two tensors, of 3 and 5 floats, that know where they belong;
  // empty while they are not there.
  struct Saved {
    StageRange layers;
    bool forwarded = false;
    std::vector<float> first, second;
  };
  static std::vector<float> SavedValues(int microbatch, const Saved& saved, size_t size);
  absl::StatusOr<Saved*> FindSaved(MicrobatchId microbatch, StageRange layers);
  absl::Status SaveCollected(MicrobatchId microbatch);
  absl::Status UseCollected(MicrobatchId microbatch);

  Tensors Make(Boundary boundary, float value) const;
  // The value that all elements have. Errors: Internal if they differ.
  absl::StatusOr<float> TakeValue(Boundary boundary, MicrobatchId microbatch);
  absl::Status MaybeFail();
  bool last() const { return stage_.value + 1 == stages_; }

  const StageId stage_;
  const int stages_;
  std::vector<Use> uses_;
  StepMode mode_ = StepMode::kTrain;
  std::map<Key, std::unique_ptr<Tensors>> buffers_;
  std::map<int, float> live_;                        // microbatches between F and B or I
  std::multimap<int, std::pair<int, int>> dropped_;  // microbatch -> first layer, behind the last
  std::multimap<int, Saved> collected_;              // microbatch -> what its layers saved
  std::vector<std::string> memory_calls_;
  PassWatch* watch_ = nullptr;
  std::map<int, float> half_done_;  // between I and W: the gradient of the output
  std::vector<int> accumulated_;    // microbatches in the order of their B or W, of this step
  std::map<int, float> losses_;
  int backwards_ = 0;
  float gradient_ = 0;
  float parameter_ = 0;
  FakeStateMemory state_memory_;
  std::vector<UpdateSettings> updates_;
  std::vector<StageRange> stepped_layers_;
  bool fail_next_ = false;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_FAKE_STAGE_H_
