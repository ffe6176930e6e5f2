#include "tests/bench/replay/replay_problem.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launch/topology/topology_file.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/published/mpress_instance.h"
#include "planner/status.h"

namespace siphon {
namespace {

Topology WithOwnUplinks(Topology topology) {
  std::vector<PcieSwitch> own;
  for (const PcieSwitch& shared : topology.switches) {
    for (const DeviceId device : shared.devices) {
      PcieSwitch& uplink = own.emplace_back(shared);
      uplink.devices = {device};
      uplink.to_host_both = BytesPerSecond(0);
      uplink.from_host_both = BytesPerSecond(0);
    }
  }
  topology.switches = std::move(own);
  topology.host_memory = Bytes(0);  // not known: no limit
  topology.drives.clear();
  return topology;
}

// A row of Table II by its name, or a GPT of so many blocks, of the same width.
absl::StatusOr<MpressRow> RowOf(const std::string& model) {
  int blocks = 0;
  if (!absl::SimpleAtoi(model, &blocks)) return FindMpressRow(model);
  SIPHON_ASSIGN_OR_RETURN(MpressRow row, FindMpressRow("GPT-5.3B"));
  row.layers = blocks;
  return row;
}

}  // namespace

std::string ToString(const ReplayedModel& model) {
  int blocks = 0;
  const std::string name = absl::SimpleAtoi(model.name, &blocks)
                               ? absl::StrCat("GPT of ", blocks, " blocks")
                               : model.name;
  if (model.memory == Bytes(0)) return absl::StrCat(name, " on ", model.topology);
  return absl::StrCat(name, " on ", model.topology, " with ", FormatBytes(model.memory),
                      " a device");
}

absl::StatusOr<PlanningProblem> MakeReplayProblem(const ReplayedModel& model,
                                                  const MiniatureScale& scale) {
  SIPHON_ASSIGN_OR_RETURN(Topology server, FindTopologyPreset(model.topology));
  for (TopologyDevice& device : server.devices) {
    if (model.memory > Bytes(0)) device.memory = model.memory;
  }
  SIPHON_ASSIGN_OR_RETURN(const MpressRow row, RowOf(model.name));
  const MpressTools tools = {.build_schedule = BuildSchedule,
                             .partition = [](const ModelSpec& spec, int stages) {
                               return PartitionModel(spec, stages, "balanced");
                             }};
  SIPHON_ASSIGN_OR_RETURN(MpressInstance instance,
                          MakeMpressInstance(row, WithOwnUplinks(std::move(server)), tools));
  return ShrinkProblem(std::move(instance.problem), scale);
}

}  // namespace siphon
