#include "pipeline/worker_layout.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "pipeline/transport/all_gather.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::StatusOr<const TensorGroup*> FindGroup(const WorkerLayout& layout, const Action& action,
                                             GroupKind kind) {
  const auto stage = static_cast<size_t>(action.stage.value);
  const auto group = static_cast<size_t>(action.group.value);
  if (stage >= layout.memory.stages.size() || group >= layout.memory.stages[stage].groups.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the memory plan has no group ", action.group.value, " of stage ", action.stage.value));
  }
  const TensorGroup& found = layout.memory.stages[stage].groups[group].group;
  if (found.kind == kind) return &found;
  return absl::FailedPreconditionError(
      absl::StrCat("group ", action.group.value, " of stage ", action.stage.value, " holds ",
                   GroupKindName(found.kind), ", the action is for ", GroupKindName(kind)));
}

}  // namespace

int WorkerCount(const WorkerLayout& layout) {
  int count = 0;
  for (const WorkerId worker : layout.worker_of_stage) count = std::max(count, worker.value + 1);
  return count;
}

WorkerId WorkerOf(const WorkerLayout& layout, StageId stage) {
  return layout.worker_of_stage.at(static_cast<size_t>(stage.value));
}

std::set<StageId> SharingStages(const WorkerLayout& layout) {
  std::set<StageId> sharing;
  for (const SharedParameter& parameter : layout.shared_parameters) {
    const std::set<StageId> users(parameter.stages.begin(), parameter.stages.end());
    if (users.size() > 1) sharing.insert(users.begin(), users.end());
  }
  return sharing;
}

std::set<WorkerId> WorkersSharing(const WorkerLayout& layout, const SharedParameter& parameter) {
  std::set<WorkerId> workers;
  for (const StageId stage : parameter.stages) workers.insert(WorkerOf(layout, stage));
  return workers;
}

absl::StatusOr<LayerTensors> ActivationsOf(const WorkerLayout& layout, const Action& action) {
  if (action.group == kWholeStage) {
    return absl::FailedPreconditionError(
        "workers move, drop and compute again the activations of a group, not of a whole stage");
  }
  SIPHON_ASSIGN_OR_RETURN(const TensorGroup* group,
                          FindGroup(layout, action, GroupKind::kActivations));
  return LayerTensors{.layers = group->layers,
                      .first = group->first_tensors > 0 ? group->bytes : Bytes(0)};
}

absl::StatusOr<StageRange> StateLayers(const WorkerLayout& layout, const Action& action) {
  if (action.group == kWholeStage) return StageRange{0, std::numeric_limits<int>::max()};
  SIPHON_ASSIGN_OR_RETURN(const TensorGroup* group,
                          FindGroup(layout, action, GroupKind::kOptimizerState));
  return group->layers;
}

GroupId ActivationGroupOf(const WorkerLayout& layout, StageId stage, StageRange layers) {
  if (static_cast<size_t>(stage.value) >= layout.memory.stages.size()) return kWholeStage;
  const std::vector<PlannedGroup>& groups = layout.memory.stages[stage.value].groups;
  for (size_t index = 0; index < groups.size(); ++index) {
    const TensorGroup& group = groups[index].group;
    if (group.kind == GroupKind::kActivations && group.layers == layers) {
      return GroupId(static_cast<int>(index));
    }
  }
  return kWholeStage;
}

std::vector<Channel> ChannelsOf(const WorkerLayout& layout) {
  std::set<Channel> channels;
  for (size_t next = 1; next < layout.worker_of_stage.size(); ++next) {
    const WorkerId before = layout.worker_of_stage[next - 1];
    const WorkerId after = layout.worker_of_stage[next];
    if (before == after) continue;
    channels.insert({before, after, Lane::kForward});
    channels.insert({after, before, Lane::kBackward});
  }
  for (const SharedParameter& parameter : layout.shared_parameters) {
    const std::set<WorkerId> workers = WorkersSharing(layout, parameter);
    for (const WorkerId from : workers) {
      for (const WorkerId to : workers) {
        if (from != to) channels.insert({from, to, Lane::kControl});
      }
    }
  }
  for (const Channel& channel : AllGatherChannels(WorkerCount(layout))) channels.insert(channel);
  return {channels.begin(), channels.end()};
}

}  // namespace siphon
