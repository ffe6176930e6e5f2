#ifndef SIPHON_PLANNER_TRAINING_PLAN_H_
#define SIPHON_PLANNER_TRAINING_PLAN_H_

#include <string>
#include <vector>

#include "planner/memory_plan.h"
#include "planner/model_spec.h"
#include "planner/plan_text.h"
#include "planner/schedule.h"
#include "planner/stage_cost.h"
#include "planner/stage_partition.h"

namespace siphon {

// All decisions of a job, fixed before the first step. Two processes with the same plan do the same
// thing.
struct TrainingPlan {
  std::string schedule_name;
  int64_t global_batch = 0;  // sequences a step
  int64_t microbatch = 0;    // sequences
  StagePartition partition;
  std::vector<SharedParameter> shared_parameters;
  MemoryPlan memory;    // tensor groups that memory actions of `training` name; empty: all stays
  Schedule training;    // lowered: communication, optimizer step and memory actions included
  Schedule evaluation;  // lowered, forward only
};

// Costs to fall back on where no layer was measured: F, I and W take kUnitTime each, parameters and
// boundaries have the bytes of `model` in fp32, all else is 0.
std::vector<StageCost> UnitStageCosts(const TrainingPlan& plan, const ModelSpec& model);

// The plan as its file has it. `costs` has an entry a stage, `source` says where they come from.
PlanText ToPlanText(const TrainingPlan& plan, const ModelSpec& model, std::vector<StageCost> costs,
                    absl::string_view source);

// The text of the plan's file, with UnitStageCosts.
std::string ToString(const TrainingPlan& plan, const ModelSpec& model);

}  // namespace siphon

#endif  // SIPHON_PLANNER_TRAINING_PLAN_H_
