#include "planner/plan_file/check_memory.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/plan_units.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Devices that a plan may name: those of its topology, or one for each worker.
int64_t KnownDevices(const PlanText& plan) {
  if (!plan.topology.devices.empty()) return DeviceCount(plan.topology);
  return int64_t{WorkerCount(plan.training)} * plan.training.replicas;
}

absl::Status CheckDevice(const PlanText& plan, DeviceId device, const PlanWord& where) {
  const int64_t known = KnownDevices(plan);
  if (device.value < known) return absl::OkStatus();
  return ErrorAt(
      where, absl::StrCat("there is no device ", device.value, "; devices are 0 to ", known - 1));
}

using LinkSet = absl::flat_hash_set<std::pair<DeviceId, DeviceId>>;

LinkSet LinkSetOf(const Topology& topology) {
  LinkSet links;
  for (const TopologyLink& link : topology.links) links.emplace(link.from, link.to);
  return links;
}

bool LinkedBothWays(const LinkSet& links, DeviceId a, DeviceId b) {
  return links.contains({a, b}) && links.contains({b, a});
}

DeviceId OwnerOf(const PlanText& plan, WorkerId worker) {
  const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
  return devices.empty() ? DeviceId(worker.value) : devices[worker.value];
}

// What is parked goes out and comes back over the link of its owner with its lender, whatever its
// wires: a way through the host would be a host_swap that takes a lender's memory as well.
absl::Status CheckLink(const PlanText& plan, const LinkSet& links, DeviceId owner, DeviceId lender,
                       const PlanWord& where) {
  if (plan.topology.devices.empty() || LinkedBothWays(links, owner, lender)) {
    return absl::OkStatus();
  }
  std::vector<int> linked;
  for (int device = 0; device < DeviceCount(plan.topology); ++device) {
    if (LinkedBothWays(links, owner, DeviceId(device))) linked.push_back(device);
  }
  const std::string remedy =
      linked.empty() ? absl::StrCat("no device is; write ", PlacementName(Placement::kHostSwap))
                     : absl::StrCat("linked with it: ", absl::StrJoin(linked, ", "));
  return ErrorAt(where,
                 absl::StrCat("device ", lender.value, " cannot lend to device ", owner.value,
                              ", which has the stage: the topology does not "
                              "link them both ways; ",
                              remedy));
}

absl::Status CheckStripes(const PlanText& plan, const LinkSet& links, DeviceId owner,
                          const PlannedGroup& planned, const PlanWord& where) {
  if (planned.choice.placement != Placement::kPeerSwap) return absl::OkStatus();
  absl::flat_hash_set<DeviceId> lenders;
  uint64_t sum = 0;
  for (const Stripe& stripe : planned.choice.stripes) {
    SIPHON_RETURN_IF_ERROR(CheckDevice(plan, stripe.lender, where));
    SIPHON_RETURN_IF_ERROR(CheckLink(plan, links, owner, stripe.lender, where));
    if (!lenders.insert(stripe.lender).second) {
      return ErrorAt(where, absl::StrCat("device ", stripe.lender.value,
                                         " has two stripes of the group; put both into one"));
    }
    sum += static_cast<uint64_t>(stripe.bytes.value);
    if (sum > static_cast<uint64_t>(planned.group.bytes.value)) break;
  }
  if (sum == static_cast<uint64_t>(planned.group.bytes.value)) return absl::OkStatus();
  return ErrorAt(
      where, absl::StrCat("the stripes do not add up to the ", ExactText(planned.group.bytes),
                          " of the group; '", PlacementName(Placement::kPeerSwap), " to device 1 ",
                          ExactText(planned.group.bytes), "' would"));
}

absl::Status CheckChoice(const StagePlan& stage, const PlannedGroup& planned,
                         const PlanWord& where) {
  const auto& [group, choice] = planned;
  for (const Placement placement : {choice.placement, choice.second_choice}) {
    if (placement != Placement::kRecompute || group.kind == GroupKind::kActivations) continue;
    return ErrorAt(where, absl::StrCat(GroupKindName(group.kind),
                                       " cannot be computed again; only activations can"));
  }
  if (choice.steps_on_device &&
      (stage.update != UpdatePlace::kHost || group.kind != GroupKind::kOptimizerState)) {
    return ErrorAt(where,
                   "'steps on device' is for optimizer state of a stage with 'update: host', where "
                   "host_swap alone means that these layers step on the host; leave it out");
  }
  // Of what is with the host or on a drive, lenders may be the second choice.
  if (choice.second_choice == Placement::kPeerSwap &&
      (choice.placement == Placement::kPeerSwap || !IsSwap(choice.placement))) {
    return ErrorAt(where,
                   absl::StrCat("the second choice is for when lenders refuse, so it is not ",
                                PlacementName(Placement::kPeerSwap)));
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(const PlanText& plan, const LinkSet& links, size_t stage,
                        const PlannedGroup& planned, const PlanWord& where) {
  const StageRange& all = plan.stages[stage].layers;
  const StageRange& range = planned.group.layers;
  if (range.begin < all.begin || range.end > all.end) {
    return ErrorAt(where,
                   absl::StrCat("the group has layers ", range.begin, " to ", range.end - 1,
                                ", but stage ", stage, " has ", all.begin, " to ", all.end - 1));
  }
  const bool some = planned.group.first_tensors > 0;
  if (some && (planned.group.kind != GroupKind::kActivations || range.end - range.begin != 1)) {
    return ErrorAt(where, "first_tensors is for the activations of one layer");
  }
  SIPHON_RETURN_IF_ERROR(CheckChoice(plan.memory.stages[stage], planned, where));
  return CheckStripes(plan, links, OwnerOf(plan, plan.stages[stage].worker), planned, where);
}

}  // namespace

absl::Status CheckGroups(const PlanText& plan, const PlanPlaces& places) {
  const LinkSet links = LinkSetOf(plan.topology);
  for (size_t stage = 0; stage < plan.memory.stages.size(); ++stage) {
    const std::vector<PlannedGroup>& groups = plan.memory.stages[stage].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      SIPHON_RETURN_IF_ERROR(
          CheckGroup(plan, links, stage, groups[group], places.stages[stage].groups[group]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMapping(const PlanText& plan, const PlanPlaces& places) {
  const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
  const int workers = WorkerCount(plan.training);
  absl::flat_hash_map<DeviceId, int> worker_of;
  for (size_t index = 0; index < devices.size(); ++index) {
    const int worker = static_cast<int>(index) % workers;
    const PlanWord& where = places.device_of_worker[worker];
    SIPHON_RETURN_IF_ERROR(CheckDevice(plan, devices[index], where));
    const auto [known, is_new] = worker_of.emplace(devices[index], worker);
    if (!is_new) {
      return ErrorAt(where, absl::StrCat("device ", devices[index].value, " has worker ",
                                         known->second, " already"));
    }
  }
  return absl::OkStatus();
}

}  // namespace siphon
