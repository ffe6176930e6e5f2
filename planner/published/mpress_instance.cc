#include "planner/published/mpress_instance.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/lower_schedule.h"
#include "planner/memory/published_formula.h"
#include "planner/performance/device_spec.h"
#include "planner/performance/host_adam.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kAdamMoments = 2;

// The model whose activations are the published formula's, not those that our layers list.
ModelSpec WithoutSavedTensors(ModelSpec model) {
  for (LayerSpec& layer : model.layers) layer.memory.reset();
  return model;
}

absl::StatusOr<Schedule> LoweredSchedule(const MpressRow& row, const MpressTools& tools) {
  SIPHON_ASSIGN_OR_RETURN(
      Schedule schedule, tools.build_schedule(row.schedule, {.workers = kMpressStages,
                                                             .microbatches = kMpressMicrobatches}));
  SIPHON_ASSIGN_OR_RETURN(schedule, InsertCommunication(std::move(schedule)));
  return AppendOptimizerStep(std::move(schedule), {});
}

absl::StatusOr<ModelOptions> ShapeOf(const MpressRow& row, const MpressTools& tools) {
  if (row.layers > 0) return FittedShape(row);
  SIPHON_ASSIGN_OR_RETURN(
      const Schedule schedule,
      tools.build_schedule(row.schedule,
                           {.workers = kMpressStages, .microbatches = kMpressMicrobatches}));
  return ClosestShape(row, schedule);
}

absl::StatusOr<std::vector<Bytes>> CapacitiesOf(const Topology& topology) {
  if (DeviceCount(topology) < kMpressStages) {
    return absl::InvalidArgumentError(
        absl::StrCat("topology ", topology.name, " has ", DeviceCount(topology),
                     " devices; MPress's pipelines have ", kMpressStages, " stages, one a device"));
  }
  std::vector<Bytes> capacity;
  for (int device = 0; device < kMpressStages; ++device) {
    const Bytes memory = topology.devices[device].memory;
    if (memory <= kMpressReserve) {
      return absl::InvalidArgumentError(
          absl::StrCat("topology ", topology.name, ": device ", device, " has ",
                       FormatBytes(memory), " of memory; more than ", FormatBytes(kMpressReserve),
                       " are needed for its driver alone"));
    }
    capacity.push_back(memory - kMpressReserve);
  }
  return capacity;
}

}  // namespace

absl::StatusOr<MpressInstance> MakeMpressInstance(const MpressRow& row, const Topology& topology,
                                                  const MpressTools& tools) {
  SIPHON_ASSIGN_OR_RETURN(const ModelOptions shape, ShapeOf(row, tools));
  return MakeShapedInstance(row, shape, topology, tools);
}

absl::StatusOr<MpressInstance> MakeShapedInstance(const MpressRow& row, const ModelOptions& shape,
                                                  const Topology& topology,
                                                  const MpressTools& tools) {
  MpressInstance instance{.row = row, .shape = shape};
  SIPHON_ASSIGN_OR_RETURN(instance.problem.capacity, CapacitiesOf(topology));
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, FindDeviceSpec(topology.device_kind));
  SIPHON_ASSIGN_OR_RETURN(ModelSpec model, BuildModelSpec(instance.shape));
  model = WithoutSavedTensors(std::move(model));
  PlanningProblem& problem = instance.problem;
  SIPHON_ASSIGN_OR_RETURN(problem.profile,
                          ProfileFromFirstPrinciples(model, device, row.microbatch, row.precision));
  SIPHON_ASSIGN_OR_RETURN(problem.partition, tools.partition(model, kMpressStages));
  SIPHON_ASSIGN_OR_RETURN(problem.schedule, LoweredSchedule(row, tools));
  problem.topology = topology;
  problem.host_step = HostAdamTime(problem.profile, BytesOfParameter(row.precision, kAdamMoments));
  problem.score = MappingScore::kSwapTime;
  instance.samples = row.microbatch * kMpressMicrobatches;
  double forward = 0;
  for (const LayerSpec& layer : model.layers) forward += static_cast<double>(layer.forward_flops);
  instance.flops = 3 * forward * static_cast<double>(instance.samples);
  return instance;
}

absl::StatusOr<MpressRow> FindMpressRow(absl::string_view name) {
  std::vector<std::string> names;
  for (const MpressRow& row : MpressTable2()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  return absl::NotFoundError(absl::StrCat("MPress's Table II has no model '", name,
                                          "'; known: ", absl::StrJoin(names, ", ")));
}

}  // namespace siphon
