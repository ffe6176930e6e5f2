#include "launch/profile/host_use.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "swap/device/nvme_parking.h"

namespace siphon {

HostUse HostUseOf(const std::vector<WorkerParking>& parking, const std::vector<Bytes>& host_steps) {
  HostUse use{.parked = HostBytes(parking), .steps = absl::c_accumulate(host_steps, Bytes(0))};
  for (const WorkerParking& worker : parking) {
    const auto drive = worker.bytes.find({.tier = Placement::kNvmeSwap});
    if (drive != worker.bytes.end()) use.drive_buffers += NvmeBufferBytes(drive->second);
  }
  return use;
}

std::vector<HostUse> HostUseOfServers(const std::vector<WorkerParking>& parking,
                                      const std::vector<Bytes>& host_steps,
                                      const Topology& topology, const DeviceMapping& mapping) {
  const auto workers = std::max(parking.size(), host_steps.size());
  const auto device_of = [&](size_t worker) {
    return mapping.device_of_worker.empty() ? DeviceId(static_cast<int>(worker))
                                            : mapping.device_of_worker[worker];
  };
  std::vector<HostUse> servers;
  for (int server = 0; server < ServerCount(topology); ++server) {
    std::vector<WorkerParking> theirs(parking.size());
    std::vector<Bytes> steps(host_steps.size());
    for (size_t worker = 0; worker < workers; ++worker) {
      if (ServerOf(topology, device_of(worker)) != server) continue;
      if (worker < parking.size()) theirs[worker] = parking[worker];
      if (worker < host_steps.size()) steps[worker] = host_steps[worker];
    }
    servers.push_back(HostUseOf(theirs, steps));
  }
  return servers;
}

HostUse FullestHost(const std::vector<HostUse>& servers) {
  return *absl::c_max_element(
      servers, [](const HostUse& a, const HostUse& b) { return a.total() < b.total(); });
}

std::vector<Bytes> HostRoomsForDrives(const FollowedPlan& plan,
                                      const std::vector<WorkerParking>& parking,
                                      const std::vector<Bytes>& host_steps) {
  std::vector<Bytes> rooms(WorkerCount(plan.schedule));
  const std::vector<StagePlan>& stages = plan.memory.stages;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const bool may_go = absl::c_any_of(stages[stage].groups, [&](const PlannedGroup& planned) {
      return StaysForHostStep(stages[stage], planned) && WouldGo(planned, Placement::kNvmeSwap);
    });
    if (!may_go) continue;
    const auto worker = static_cast<size_t>(plan.schedule.worker_of_stage[stage].value);
    const std::vector<WorkerParking> its = {parking[worker]};
    rooms[worker] = HostBytes(its) + (host_steps.empty() ? Bytes(0) : host_steps[worker]);
  }
  return rooms;
}

std::string ToString(const HostUse& use) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view what, Bytes bytes) {
    if (bytes > Bytes(0)) parts.push_back(absl::StrCat(what, " ", FormatBytes(bytes)));
  };
  add("parked", use.parked);
  add("for optimizer steps", use.steps);
  add("buffers of drives", use.drive_buffers);
  if (parts.size() < 2) return FormatBytes(use.total());
  return absl::StrCat(FormatBytes(use.total()), " (", absl::StrJoin(parts, ", "), ")");
}

}  // namespace siphon
