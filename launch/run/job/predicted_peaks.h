#ifndef SIPHON_LAUNCH_RUN_JOB_PREDICTED_PEAKS_H_
#define SIPHON_LAUNCH_RUN_JOB_PREDICTED_PEAKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "planner/units.h"

namespace siphon {

// [worker]: what it holds at its fullest moment by the job's plan, messages and what it lends
// included. Layers that nothing is known of count as little as they can. Pure. Errors: as
// EstimateJob.
absl::StatusOr<std::vector<Bytes>> PredictedPeaks(const PreparedJob& prepared);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_PREDICTED_PEAKS_H_
