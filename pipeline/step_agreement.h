#ifndef SIPHON_PIPELINE_STEP_AGREEMENT_H_
#define SIPHON_PIPELINE_STEP_AGREEMENT_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/transport/transport.h"
#include "pipeline/worker_layout.h"

namespace siphon {

// What all workers know at the end of a step; the same bits on each of them.
struct StepAgreement {
  double gradient_norm = 0;   // global 2-norm before clipping
  std::vector<float> losses;  // of each microbatch, ascending
};

// What one worker brings to the agreement.
struct StepContribution {
  std::map<StageId, std::vector<float>> norms;  // StageCompute::GradientNorms of each stage here
  std::vector<float> losses;                    // of the last stage, if it is here
};

// Collects every stage's parameter norms and the last stage's losses. Collective among all workers.
// Squares are summed in double precision in canonical order, which is stage by stage since the
// first use of a parameter owns it.
//
// Requires: `transport` is not null unless there is one worker only.
// Errors: Internal when a stage gives another number of norms or losses than the layout says; those
// of the transport.
absl::StatusOr<StepAgreement> AgreeOnStep(WorkerId me, const WorkerLayout& layout, int microbatches,
                                          const StepContribution& mine, Transport* transport);

// The 2-norm of a vector whose parts have these norms: squares added in double precision, in order.
double NormOfNorms(absl::Span<const float> norms);

// min(1, clip / (norm + 1e-6)) in single precision; 1 when `clip_norm` is 0.
float ClippingFactor(double gradient_norm, double clip_norm);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STEP_AGREEMENT_H_
