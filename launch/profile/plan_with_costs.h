#ifndef SIPHON_LAUNCH_PROFILE_PLAN_WITH_COSTS_H_
#define SIPHON_LAUNCH_PROFILE_PLAN_WITH_COSTS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/profile_file.h"
#include "planner/model_profile.h"
#include "planner/performance/device_spec.h"
#include "planner/plan_text.h"

namespace siphon {

// Where times come from, best first: those of a run, a measured profile, a device that they are
// calculated for, else unit times. Bytes are never those of `run_times`.
struct CostSource {
  const ProfileFile* profile = nullptr;
  const DeviceSpec* device = nullptr;
  const ModelProfile* run_times = nullptr;  // LayerTimes of the others, as a run was found to take
  absl::string_view profile_path = {};      // for messages; empty: the profile is no file's
};

// What each layer takes by the source. Errors: as PlanWithCosts. Requires: the source has one.
absl::StatusOr<ModelProfile> LayerTimes(const PlannedJob& planned, const CostSource& source);

// The plan of a job with what each stage costs. Bytes: measured ones of the profile, else those
// that the runtime accounting calculates. Pure. Errors: InvalidArgument when the profile is of
// another model or microbatch; as EstimateRuntime and ProfileFromFirstPrinciples.
absl::StatusOr<PlanText> PlanWithCosts(const PlannedJob& planned, const CostSource& source);

// That a profile has the layers of the model, at this microbatch. `path` is its file's in messages;
// empty: it is no file's. Errors: InvalidArgument with the first that is missing or differs, and
// where it stands.
absl::Status CheckProfileFits(const ProfileFile& profile, const ModelSpec& model,
                              int64_t microbatch, absl::string_view path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PLAN_WITH_COSTS_H_
