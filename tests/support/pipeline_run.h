#ifndef SIPHON_TESTS_SUPPORT_PIPELINE_RUN_H_
#define SIPHON_TESTS_SUPPORT_PIPELINE_RUN_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/stage_worker.h"
#include "pipeline/torch/torch_stage.h"
#include "pipeline/transport/ring_transport.h"
#include "planner/lower_schedule.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/training_plan.h"
#include "swap/memory_ledger.h"

namespace siphon {

// A plan around compute actions: lowered and validated, with the forward-only program for
// evaluations.
absl::StatusOr<TrainingPlan> PlanAround(const ModelSpec& model, const StagePartition& partition,
                                        const Schedule& compute_only,
                                        NormPlace norm = NormPlace::kBeforeSteps);

struct PipelineSettings {
  uint64_t seed = 1;
  OptimizerOptions optimizer;
  double clip_norm = 0;
  Precision precision = Precision::kFloat32;
  float loss_scale = 0;  // the first step's; 0: none is kept up, and no step is skipped
  int threads_per_worker = 1;
  std::vector<double> learning_rates;  // of each step
  bool evaluate_after = false;         // one evaluation of the last step's batch, without dropout
  // Books of each worker's tensors, their peak that of the last step; empty: no books. They need
  // InstallCountingAllocator.
  std::vector<std::shared_ptr<MemoryLedger>> ledgers;
  // Messages go through these, as between processes; empty: strict rendezvous.
  std::vector<RingSpec> rings;
};

struct PipelineStepResult {
  double loss = 0;  // fp64 sum of the microbatches', ascending
  std::vector<float> microbatch_losses;
  double gradient_norm = 0;
  bool skipped = false;
  std::vector<int> peak_live_microbatches;  // of each worker
};

// What a checkpoint would hold, by parameter name: masters where there are any.
using NamedFloats = std::map<std::string, std::vector<float>>;

struct PipelineResult {
  std::vector<PipelineStepResult> steps;
  std::vector<float> evaluation_losses;
  NamedFloats parameters, first_moments, second_moments;
  // Names of tied parameters whose copies on different stages differ in a bit after the last step,
  // and of those that are not their masters rounded.
  std::vector<std::string> diverged_copies;
};

// Trains in this process: one thread a worker, the transport of the settings, the production
// interpreter and stages. `steps[i]` is the batch of step i. Errors: the first worker's that
// failed; the others are ended.
absl::StatusOr<PipelineResult> RunPipeline(const ModelOptions& options, const TrainingPlan& plan,
                                           const std::vector<StepInputs>& steps,
                                           const PipelineSettings& settings);

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_PIPELINE_RUN_H_
