#ifndef SIPHON_LAUNCH_RUN_LAYER_PROFILE_LAYER_ROUNDS_H_
#define SIPHON_LAUNCH_RUN_LAYER_PROFILE_LAYER_ROUNDS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/data/batches.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/layer_profile/layer_rig.h"

namespace siphon {

// All layers of a job, each as a stage of its own.
//
// Thread-safety: as of LayerRig; several of them may run in several threads at the same time.
class LayerRounds {
 public:
  // `job` and `batch` must outlive this. Errors: as of MakeTorchStage.
  static absl::StatusOr<LayerRounds> Make(const PreparedJob& job, const Batch& batch);

  // The job's first samples, as many as a round takes.
  static absl::StatusOr<Batch> FirstBatch(const PreparedJob& job);

  // A training step of two microbatches through all layers, one after the other. The second one is
  // noted, since it adds to gradients that are there already; of the first what it takes to compute
  // each layer again before its backward. `round` counts from 0.
  absl::Status Run(int round, BackwardMode kind, Noting noting);

  std::vector<LayerProfile> Profiles() const;

 private:
  LayerRounds(const PreparedJob& job, const Batch& batch) : job_(&job), batch_(&batch) {}
  LayerRig* Rig(size_t layer) const;  // null beyond both ends
  absl::Status RunFirst(BackwardMode kind, Noting noting);
  absl::Status RunSecond(BackwardMode kind, Noting noting);

  const PreparedJob* job_;
  const Batch* batch_;
  std::vector<std::unique_ptr<LayerRig>> rigs_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_LAYER_PROFILE_LAYER_ROUNDS_H_
