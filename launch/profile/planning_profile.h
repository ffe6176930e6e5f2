#ifndef SIPHON_LAUNCH_PROFILE_PLANNING_PROFILE_H_
#define SIPHON_LAUNCH_PROFILE_PLANNING_PROFILE_H_

#include <vector>

#include "planner/memory/memory_estimate.h"
#include "planner/model_profile.h"
#include "planner/plan_text.h"

namespace siphon {

// The layers of a job's stages with the bytes that its workers hold for them: StageCosts of it and
// of the job's partition are those of `stages`, the job's plan (PlanWithCosts), up to a tensor
// between two layers that one of them saves in other numbers than the other.
//
// A parameter counts with the first of its layers in each stage. What a stage holds beyond its
// layers' gradients and optimizer state counts with its first layer that has parameters, or else
// with its first one; its workspace with its first one.
// Activations are those of `times` where they were measured, else of the model's own lists, with
// what a layer shares with its neighbours.
//
// Requires: CheckMemoryInputs is OK; `times` is of the model.
ModelProfile PlanningProfile(ModelProfile times, const MemoryInputs& inputs,
                             const std::vector<PlanStage>& stages);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PLANNING_PROFILE_H_
