#ifndef SIPHON_LAUNCH_RUN_LAYER_PROFILE_PROFILE_LAYERS_H_
#define SIPHON_LAUNCH_RUN_LAYER_PROFILE_PROFILE_LAYERS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/profile/profile_file.h"
#include "launch/run/job/prepare_job.h"

namespace siphon {

struct ProfileOptions {
  int warm_up = 3;       // rounds that are not noted
  int repetitions = 11;  // rounds whose median counts, for each kind of backward
};

// Runs the job's layers here, in this process and on its first training samples: each round is a
// training step of two microbatches through all layers, one after the other, so that caches are as
// cold as in a run. The second microbatch is noted, as it adds to gradients that are there already.
// Rounds take turns in running the backward whole and as I and W.
//
// Beside the layers: messages between workers, and what workers take from each other.
//
// The optimizer's time includes the norms of the gradients. `told` hears of each round that is
// done. Errors: as of MakeTorchStage and StageCompute.
absl::StatusOr<ProfileFile> ProfileLayers(const PreparedJob& job, const ProfileOptions& options,
                                          const std::function<void(int done, int all)>& told);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_LAYER_PROFILE_PROFILE_LAYERS_H_
