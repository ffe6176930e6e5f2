#include "launch/run/validation_loss.h"

#include <algorithm>
#include <vector>

#include "launch/data/batches.h"
#include "launch/run/seat/step_record.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<double> ValidationLoss(const PreparedJob& prepared, const Schedule& evaluation,
                                      int64_t step, RunningStages& stages,
                                      Coordinator& coordinator) {
  const JobConfig& job = prepared.job;
  const BatchShape shape{.global_batch = evaluation.microbatches * job.train.microbatch,
                         .microbatch = job.train.microbatch};
  int64_t batches = ValidationBatchCount(prepared.data, shape);
  if (job.train.validation_batches > 0) batches = std::min(batches, job.train.validation_batches);
  ValidationSum mine;
  for (int64_t index = 0; index < batches; ++index) {
    Batch batch;
    if (stages.NeedsData()) {
      SIPHON_ASSIGN_OR_RETURN(batch, ValidationBatch(prepared.data, shape,
                                                     static_cast<uint64_t>(job.train.seed), index));
    }
    SIPHON_ASSIGN_OR_RETURN(const StepReport report,
                            stages.RunBatch(evaluation, batch, step, StepMode::kEvaluate, {}));
    if (report.losses.empty()) continue;
    double batch_loss = 0;
    for (const float loss : report.losses) batch_loss += loss;
    mine.loss += batch_loss * static_cast<double>(batch.target_count);
    mine.targets += static_cast<double>(batch.target_count);
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<ValidationSum> sums, coordinator.Gather(mine));
  ValidationSum total;
  for (const ValidationSum& sum : sums) {
    total.loss += sum.loss;
    total.targets += sum.targets;
  }
  return total.loss / std::max(1.0, total.targets);
}

}  // namespace siphon
