#ifndef SIPHON_PLANNER_TRAINING_PLAN_H_
#define SIPHON_PLANNER_TRAINING_PLAN_H_

#include <string>
#include <vector>

#include "planner/model_spec.h"
#include "planner/schedule.h"
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
  Schedule training;    // lowered: communication and optimizer step included
  Schedule evaluation;  // lowered, forward only
};

// What people read in plan.txt: the partition with parameters a stage, and both programs.
std::string ToString(const TrainingPlan& plan, const ModelSpec& model);

}  // namespace siphon

#endif  // SIPHON_PLANNER_TRAINING_PLAN_H_
