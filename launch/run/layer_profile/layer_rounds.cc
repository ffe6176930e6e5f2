#include "launch/run/layer_profile/layer_rounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr MicrobatchId kFirst{0};
constexpr MicrobatchId kSecond{1};
constexpr int kMicrobatches = 2;

StagePartition SingleLayers(const ModelSpec& model) {
  StagePartition partition;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    partition.stages.push_back({layer, layer + 1});
  }
  return partition;
}

StepInputs InputsOf(const PreparedJob& job, const Batch& batch, int step) {
  StepInputs inputs{.step = step, .target_count = std::max<int64_t>(1, batch.target_count)};
  for (const Batch::Microbatch& microbatch : batch.microbatches) {
    inputs.microbatches.push_back(
        {.input_spec = Batched(job.data.input, job.job.train.microbatch),
         .target_spec = Batched(job.data.target, job.job.train.microbatch),
         .input = microbatch.input,
         .target = microbatch.target});
  }
  return inputs;
}

}  // namespace

absl::StatusOr<LayerRounds> LayerRounds::Make(const PreparedJob& job, const Batch& batch) {
  LayerRounds rounds(job, batch);
  const StagePartition single_layers = SingleLayers(job.model.spec);
  for (size_t layer = 0; layer < job.model.spec.layers.size(); ++layer) {
    SIPHON_ASSIGN_OR_RETURN(rounds.rigs_.emplace_back(),
                            LayerRig::Make(job, single_layers, static_cast<int>(layer)));
  }
  return rounds;
}

absl::StatusOr<Batch> LayerRounds::FirstBatch(const PreparedJob& job) {
  const TrainConfig& train = job.job.train;
  return TrainingBatch(
      job.data, {.global_batch = kMicrobatches * train.microbatch, .microbatch = train.microbatch},
      static_cast<uint64_t>(train.seed), 0);
}

LayerRig* LayerRounds::Rig(size_t layer) const {
  return layer < rigs_.size() ? rigs_[layer].get() : nullptr;
}

absl::Status LayerRounds::RunFirst(BackwardMode kind, Noting noting) {
  const bool again = noting == Noting::kOn;
  SavedMode saved = SavedMode::kKept;
  if (again) saved = kind == BackwardMode::kWhole ? SavedMode::kRemade : SavedMode::kFirstRemade;
  for (size_t layer = 0; layer < rigs_.size(); ++layer) {
    SIPHON_RETURN_IF_ERROR(rigs_[layer]->Forward(kFirst, Rig(layer - 1), saved, Noting::kOff));
  }
  for (size_t layer = rigs_.size(); layer-- > 0;) {
    if (again) SIPHON_RETURN_IF_ERROR(rigs_[layer]->Recompute(kFirst, noting));
    SIPHON_RETURN_IF_ERROR(rigs_[layer]->Backward(kFirst, Rig(layer + 1), kind, Noting::kOff));
  }
  return absl::OkStatus();
}

absl::Status LayerRounds::RunSecond(BackwardMode kind, Noting noting) {
  for (size_t layer = 0; layer < rigs_.size(); ++layer) {
    SIPHON_RETURN_IF_ERROR(
        rigs_[layer]->Forward(kSecond, Rig(layer - 1), SavedMode::kKept, noting));
  }
  for (size_t layer = rigs_.size(); layer-- > 0;) {
    SIPHON_RETURN_IF_ERROR(rigs_[layer]->Backward(kSecond, Rig(layer + 1), kind, noting));
  }
  return absl::OkStatus();
}

absl::Status LayerRounds::Run(int round, BackwardMode kind, Noting noting) {
  const StepInputs inputs = InputsOf(*job_, *batch_, round);
  for (const auto& rig : rigs_) SIPHON_RETURN_IF_ERROR(rig->BeginStep(inputs));
  SIPHON_RETURN_IF_ERROR(RunFirst(kind, noting));
  SIPHON_RETURN_IF_ERROR(RunSecond(kind, noting));
  for (const auto& rig : rigs_) SIPHON_RETURN_IF_ERROR(rig->Step(round + 1, noting));
  return absl::OkStatus();
}

std::vector<LayerProfile> LayerRounds::Profiles() const {
  std::vector<LayerProfile> profiles;
  for (const auto& rig : rigs_) profiles.push_back(rig->Profile());
  return profiles;
}

}  // namespace siphon
