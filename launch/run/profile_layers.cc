#include "launch/run/profile_layers.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/data/batches.h"
#include "launch/profile/machine.h"
#include "launch/run/layer_rig.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/status.h"

namespace siphon {
namespace {

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

using Rigs = std::vector<std::unique_ptr<LayerRig>>;

absl::Status RunRound(const Rigs& rigs, const StepInputs& inputs, BackwardKind kind,
                      Noting noting) {
  const auto rig = [&rigs](size_t layer) {  // null beyond both ends
    return layer < rigs.size() ? rigs[layer].get() : nullptr;
  };
  for (const auto& each : rigs) SIPHON_RETURN_IF_ERROR(each->BeginStep(inputs));
  for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
    const Noting now = microbatch + 1 == kMicrobatches ? noting : Noting::kOff;
    const MicrobatchId id(microbatch);
    for (size_t layer = 0; layer < rigs.size(); ++layer) {
      SIPHON_RETURN_IF_ERROR(rigs[layer]->Forward(id, rig(layer - 1), now));
    }
    for (size_t layer = rigs.size(); layer-- > 0;) {
      SIPHON_RETURN_IF_ERROR(rigs[layer]->Backward(id, rig(layer + 1), kind, now));
    }
  }
  for (const auto& each : rigs) {
    SIPHON_RETURN_IF_ERROR(each->Step(inputs.step + 1, noting));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProfileFile> ProfileLayers(const PreparedJob& job, const ProfileOptions& options,
                                          const std::function<void(int done, int all)>& told) {
  const JobConfig& config = job.job;
  const auto threads = static_cast<int>(config.pipeline.threads_per_worker);
  SetTorchThreads(threads);
  SIPHON_ASSIGN_OR_RETURN(const Batch batch,
                          TrainingBatch(job.data,
                                        {.global_batch = kMicrobatches * config.train.microbatch,
                                         .microbatch = config.train.microbatch},
                                        static_cast<uint64_t>(config.train.seed), 0));
  const StagePartition single_layers = SingleLayers(job.model.spec);
  Rigs rigs;
  for (size_t layer = 0; layer < job.model.spec.layers.size(); ++layer) {
    SIPHON_ASSIGN_OR_RETURN(rigs.emplace_back(),
                            LayerRig::Make(job, single_layers, static_cast<int>(layer)));
  }
  const int rounds = 2 * (options.warm_up + options.repetitions);
  for (int round = 0; round < rounds; ++round) {
    const Noting noting = round < 2 * options.warm_up ? Noting::kOff : Noting::kOn;
    const BackwardKind kind = round % 2 == 0 ? BackwardKind::kWhole : BackwardKind::kSplit;
    SIPHON_RETURN_IF_ERROR(RunRound(rigs, InputsOf(job, batch, round), kind, noting));
    if (told) told(round + 1, rounds);
  }
  ProfileFile file;
  file.model = {
      .model = config.model.kind,
      .device = absl::StrCat(ProcessorName(), ", ", threads, threads == 1 ? " thread" : " threads"),
      .source = "measured",
      .microbatch = config.train.microbatch};
  for (const auto& rig : rigs) file.model.layers.push_back(rig->Profile());
  file.transport = MeasureHandover();
  return file;
}

}  // namespace siphon
