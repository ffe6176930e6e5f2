#include "launch/run/layer_profile/profile_layers.h"

#include <algorithm>

#include "launch/profile/machine.h"
#include "launch/run/job/optimizer_of.h"
#include "launch/run/layer_profile/layer_rounds.h"
#include "launch/run/layer_profile/measure_cores.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The largest that goes between two layers.
Bytes LargestBoundary(const ModelProfile& profile) {
  Bytes largest;
  for (const LayerProfile& layer : profile.layers) largest = std::max(largest, layer.boundary);
  return largest;
}

}  // namespace

absl::StatusOr<ProfileFile> ProfileLayers(const PreparedJob& job, const ProfileOptions& options,
                                          const std::function<void(int done, int all)>& told) {
  const JobConfig& config = job.job;
  const auto threads = static_cast<int>(config.pipeline.threads_per_worker);
  SetTorchThreads(threads);
  SetDeterminism(DeterminismOf(config.train));
  SIPHON_ASSIGN_OR_RETURN(const Batch batch, LayerRounds::FirstBatch(job));
  SIPHON_ASSIGN_OR_RETURN(LayerRounds layers, LayerRounds::Make(job, batch));
  const int rounds = 2 * (options.warm_up + options.repetitions);
  for (int round = 0; round < rounds; ++round) {
    const Noting noting = round < 2 * options.warm_up ? Noting::kOff : Noting::kOn;
    const BackwardMode kind = round % 2 == 0 ? BackwardMode::kWhole : BackwardMode::kSplit;
    SIPHON_RETURN_IF_ERROR(layers.Run(round, kind, noting));
    if (told) told(round + 1, rounds);
  }
  ProfileFile file;
  file.model = {.model = config.model.kind,
                .device = NameWithThreads(threads),
                .source = "measured",
                .microbatch = config.train.microbatch};
  file.model.layers = layers.Profiles();
  file.transport = MeasureHandover(LargestBoundary(file.model));
  SIPHON_ASSIGN_OR_RETURN(file.cores_together, MeasureCores(job, batch, options.repetitions));
  return file;
}

}  // namespace siphon
