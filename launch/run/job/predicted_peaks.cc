#include "launch/run/job/predicted_peaks.h"

#include "launch/plan_job/job_memory.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<std::vector<Bytes>> PredictedPeaks(const PreparedJob& prepared) {
  const std::vector<Bytes>& planned = prepared.plan_text.predicted.peak;
  if (!planned.empty()) return planned;
  SIPHON_ASSIGN_OR_RETURN(
      const MemoryEstimate estimate,
      EstimateJob({prepared.job, prepared.model.spec, prepared.plan}, Accounting::kRuntime));
  std::vector<Bytes> peaks;
  for (const MemoryByKind& worker : estimate.workers) peaks.push_back(Total(worker));
  return peaks;
}

}  // namespace siphon
