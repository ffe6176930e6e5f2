#include "planner/lowering/check_lowering.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckSizes(const Schedule& schedule, const MemoryPlan& plan,
                        const LowerMemoryOptions& options) {
  const auto stages = static_cast<size_t>(StageCount(schedule));
  const auto check = [&](size_t size, absl::string_view what) -> absl::Status {
    if (size == stages) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the memory plan has ", what, " for ", size,
                                                   " stages, but the schedule has ", stages));
  };
  SIPHON_RETURN_IF_ERROR(check(plan.stages.size(), "groups"));
  if (!options.timing.empty()) {
    SIPHON_RETURN_IF_ERROR(check(options.timing.size(), "times of copies"));
  }
  if (!options.direct.empty()) {
    SIPHON_RETURN_IF_ERROR(check(options.direct.size(), "rules for direct backwards"));
  }
  if (!options.state_times.empty()) {
    SIPHON_RETURN_IF_ERROR(check(options.state_times.size(), "times of optimizer state"));
  }
  return options.weights.empty() ? absl::OkStatus()
                                 : check(options.weights.size(), "residence of weights");
}

// That options which name layers know all of them; `what` is what they say.
absl::Status CheckLayers(const MemoryPlan& plan, size_t layers, absl::string_view what) {
  if (layers == 0) return absl::OkStatus();
  for (const StagePlan& stage : plan.stages) {
    for (const auto& [group, choice] : stage.groups) {
      if (group.kind != GroupKind::kActivations) continue;
      if (static_cast<size_t>(group.layers.begin) < layers) continue;
      return absl::InvalidArgumentError(absl::StrCat("the memory plan has activations of layer ",
                                                     group.layers.begin, ", but says of ", layers,
                                                     " layers ", what));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckChoices(const MemoryPlan& plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const auto& [group, choice] : plan.stages[stage].groups) {
      if (choice.placement != Placement::kRecompute || group.kind == GroupKind::kActivations) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          GroupKindName(group.kind), " of stage ", stage,
          " cannot be computed again: only activations take ", PlacementName(choice.placement)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckActions(const Schedule& schedule, const MemoryPlan& plan) {
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    for (const Action& action : schedule.programs[worker]) {
      if (IsMemory(action.kind)) {
        return absl::FailedPreconditionError(
            absl::StrCat("a memory plan is for a schedule without memory actions, but worker ",
                         worker, " has ", ToString(action)));
      }
      if (action.kind != ActionKind::kUpdate) continue;
      for (const auto& [group, choice] : plan.stages[action.stage.value].groups) {
        if (IsPassing(group.kind) || !IsSwap(choice.placement)) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            GroupKindName(group.kind), " of stage ", action.stage.value, " cannot be away: worker ",
            worker, " has ", ToString(action), ", which needs them in the middle of the step"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLowering(const Schedule& schedule, const MemoryPlan& plan,
                           const LowerMemoryOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckSizes(schedule, plan, options));
  SIPHON_RETURN_IF_ERROR(
      CheckLayers(plan, options.made_ahead.size(), "where they are computed again"));
  SIPHON_RETURN_IF_ERROR(
      CheckLayers(plan, options.shares.size(), "of how many microbatches they go"));
  SIPHON_RETURN_IF_ERROR(CheckChoices(plan));
  return CheckActions(schedule, plan);
}

}  // namespace siphon
