#ifndef SIPHON_PIPELINE_WORKER_LAYOUT_H_
#define SIPHON_PIPELINE_WORKER_LAYOUT_H_

#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/transport/transport.h"
#include "planner/action.h"
#include "planner/home_groups.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"

namespace siphon {

// What all workers know of the job's shape.
struct WorkerLayout {
  std::vector<WorkerId> worker_of_stage;
  std::vector<SharedParameter> shared_parameters;
  std::vector<int> owned_parameters;  // number of parameters that each *stage* owns, for the norm
  MemoryPlan memory;                  // tensor groups that memory actions of programs name
  HomeGroups home;  // those of them that training programs have there between steps
};

int WorkerCount(const WorkerLayout& layout);
WorkerId WorkerOf(const WorkerLayout& layout, StageId stage);
// Stages that share a parameter with another stage.
std::set<StageId> SharingStages(const WorkerLayout& layout);
// The workers that hold a stage with a use of the parameter, ascending.
std::set<WorkerId> WorkersSharing(const WorkerLayout& layout, const SharedParameter& parameter);

// The activations that a memory action means. Errors: FailedPrecondition for a whole stage, and for
// a group that the stage does not have, or that holds something else.
absl::StatusOr<LayerTensors> ActivationsOf(const WorkerLayout& layout, const Action& action);

// The layers that a STEP means: those of its group of optimizer state, or all that there can be.
// Errors: as above.
absl::StatusOr<StageRange> StateLayers(const WorkerLayout& layout, const Action& action);

// The group of a stage's activations of these layers; kWholeStage where there is none.
GroupId ActivationGroupOf(const WorkerLayout& layout, StageId stage, StageRange layers);

// Every channel that a worker of this layout uses in training and evaluation, each once, in a fixed
// order: activations forward and gradients backward between neighbouring stages, shared gradients,
// and AllGather's.
std::vector<Channel> ChannelsOf(const WorkerLayout& layout);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_WORKER_LAYOUT_H_
