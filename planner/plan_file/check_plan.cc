#include "planner/plan_file/check_plan.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/plan_file/check_memory.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckStages(const PlanText& plan, const PlanPlaces& places) {
  const int with_actions = StageCount(plan.training);
  if (static_cast<int>(plan.stages.size()) != with_actions) {
    return ErrorAt(places.training,
                   absl::StrCat("the programs have actions of ", with_actions,
                                " stages, but the file describes ", plan.stages.size()));
  }
  for (int stage = 0; stage < with_actions; ++stage) {
    const WorkerId worker = plan.training.worker_of_stage[stage];
    if (plan.stages[stage].worker != worker) {
      return ErrorAt(
          places.stages[stage].worker,
          absl::StrCat("stage ", stage, " is on worker ", plan.stages[stage].worker.value,
                       ", but its actions are in the program of worker ", worker.value));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSharing(const PlanText& plan, const PlanPlaces& places) {
  for (const PlanSharing& shared : plan.shared_parameters) {
    for (const StageId stage : shared.stages) {
      if (stage.value < StageCount(plan.training)) continue;
      return ErrorAt(places.training,
                     absl::StrCat("parameter ", QuotedWord(shared.parameter), " is in stage ",
                                  stage.value, ", which has no actions"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const PlanText& plan, const PlanPlaces& places) {
  const Schedule& training = plan.training;
  const auto microbatches = CheckedProduct(training.microbatches, training.replicas, "");
  const auto batch =
      microbatches.ok() ? CheckedProduct(*microbatches, plan.microbatch, "") : microbatches;
  if (batch.ok() && *batch == plan.global_batch) return absl::OkStatus();
  const std::string replicas =
      training.replicas > 1 ? absl::StrCat(" in each of ", training.replicas, " replicas") : "";
  return ErrorAt(places.job, absl::StrCat("global_batch is ", plan.global_batch,
                                          ", but the programs have ", training.microbatches,
                                          " microbatches of ", plan.microbatch, replicas));
}

absl::Status CheckWorkers(const PlanText& plan, const PlanPlaces& places) {
  const int workers = WorkerCount(plan.training);
  if (static_cast<int>(plan.workers.size()) > workers) {
    return ErrorAt(places.last_worker, absl::StrCat("there is no '", places.last_worker.text,
                                                    "'; the programs are of ", workers));
  }
  if (places.evaluation.line > 0 &&
      (plan.evaluation.worker_of_stage != plan.training.worker_of_stage ||
       WorkerCount(plan.evaluation) != workers)) {
    return ErrorAt(places.evaluation,
                   "its stages are not on the workers that have them when training");
  }
  return absl::OkStatus();
}

absl::Status CheckLayerCosts(const PlanText& plan, const PlanPlaces& places) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const PlanStage& one = plan.stages[stage];
    const auto layers = static_cast<size_t>(one.layers.end - one.layers.begin);
    const size_t costs = one.layer_costs.size();
    const bool all_or_none = (costs > 0) == !plan.stages[0].layer_costs.empty();
    if (all_or_none && (costs == 0 || costs == layers)) continue;
    return ErrorAt(
        places.stages[stage].header,
        absl::StrCat("stage ", stage, " has lines with the costs of ", costs, " of its ", layers,
                     " layers; either all layers of all stages have them or "
                     "none"));
  }
  return absl::OkStatus();
}

absl::Status CheckPrediction(const PlanText& plan, const PlanPlaces& places) {
  const int64_t workers = int64_t{WorkerCount(plan.training)} * plan.training.replicas;
  for (const size_t peaks : {plan.predicted.peak.size(), plan.predicted.peak_at_most.size()}) {
    if (peaks == 0 || static_cast<int64_t>(peaks) == workers) continue;
    return ErrorAt(places.predicted, absl::StrCat("there are ", peaks, " peaks of ", workers,
                                                  " workers; write one each"));
  }
  return absl::OkStatus();
}

absl::Status CheckLinks(const PlanText& plan, const PlanPlaces& places) {
  const absl::Status checked = CheckTopology(plan.topology);
  return checked.ok() ? checked : ErrorAt(places.topology, checked.message());
}

}  // namespace

absl::Status CheckPlan(const PlanText& plan, const PlanPlaces& places) {
  SIPHON_RETURN_IF_ERROR(CheckWorkers(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckStages(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckSharing(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckBatch(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckLayerCosts(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckLinks(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckMapping(plan, places));
  SIPHON_RETURN_IF_ERROR(CheckGroups(plan, places));
  return CheckPrediction(plan, places);
}

}  // namespace siphon
