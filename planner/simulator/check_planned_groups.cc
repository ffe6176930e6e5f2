#include "planner/simulator/check_planned_groups.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Finds what is wrong with one group of one stage, whose layers are [first, first + layers.size()).
class GroupChecker {
 public:
  GroupChecker(const SimulationInput& input, size_t stage, int first_layer)
      : input_(input), stage_(stage), first_layer_(first_layer) {
    for (std::vector<int>& owners : owner_) owners.assign(input.layers[stage].size(), -1);
  }

  absl::Status Check(size_t group) {
    group_ = group;
    SIPHON_RETURN_IF_ERROR(CheckLayers());
    SIPHON_RETURN_IF_ERROR(CheckBytes());
    SIPHON_RETURN_IF_ERROR(CheckPlacement());
    return CheckStripes();
  }

 private:
  const PlannedGroup& Planned() const { return input_.memory.stages[stage_].groups[group_]; }

  absl::Status Bad(absl::string_view complaint) const {
    return absl::InvalidArgumentError(
        absl::StrCat("group ", group_, " of stage ", stage_, " ", complaint));
  }

  absl::Status CheckLayers() {
    const auto& [group, choice] = Planned();
    const int end = first_layer_ + static_cast<int>(input_.layers[stage_].size());
    if (group.layers.begin < first_layer_ || group.layers.end > end ||
        group.layers.begin >= group.layers.end) {
      return Bad(absl::StrCat("has layers ", group.layers.begin, " to ", group.layers.end - 1,
                              ", but the stage has ", first_layer_, " to ", end - 1));
    }
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      int& owner = owner_[static_cast<size_t>(group.kind)][layer - first_layer_];
      if (owner >= 0) {
        return Bad(absl::StrCat("has the ", GroupKindName(group.kind), " of layer ", layer,
                                ", which group ", owner, " has"));
      }
      owner = static_cast<int>(group_);
    }
    return absl::OkStatus();
  }

  absl::Status CheckBytes() {
    const TensorGroup& group = Planned().group;
    for (const int64_t figure :
         {group.bytes.value, group.input.value, group.recompute.value, group.workspace.value}) {
      if (figure < 0) return Bad(absl::StrCat("has a figure of ", figure, "; 0 is the least"));
    }
    if (group.kind != GroupKind::kActivations) {
      if (group.first_tensors != 0) {
        return Bad("has the first tensors of a layer, but only activations have an order");
      }
      return CheckSum();
    }
    Bytes saved;
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      saved += input_.layers[stage_][layer - first_layer_].stash;
    }
    if (group.first_tensors != 0) return CheckFirstTensors(saved);
    if (saved == group.bytes) return absl::OkStatus();
    return Bad(absl::StrCat("has ", group.bytes.value,
                            " bytes of activations, but its layers save ", saved.value));
  }

  // `saved`: all that its layers save.
  absl::Status CheckFirstTensors(Bytes saved) {
    const TensorGroup& group = Planned().group;
    if (group.first_tensors < 0 || group.layers.end - group.layers.begin != 1) {
      return Bad(absl::StrCat("has the first ", group.first_tensors, " tensors of ",
                              group.layers.end - group.layers.begin,
                              " layers; only of one layer can some be in a group"));
    }
    if (group.bytes < saved) return absl::OkStatus();
    return Bad(absl::StrCat("has ", group.bytes.value, " bytes in its layer's first ",
                            group.first_tensors, " tensors, but all of them have ", saved.value));
  }

  // Groups of a kind may leave some of its tensors out, but not have more.
  absl::Status CheckSum() {
    const TensorGroup& group = Planned().group;
    const StageCost& cost = input_.stages[stage_];
    const Bytes all = group.kind == GroupKind::kGradients        ? cost.gradients
                      : group.kind == GroupKind::kOptimizerState ? cost.optimizer_state
                                                                 : cost.parameters;
    Bytes& sum = sums_[static_cast<size_t>(group.kind)];
    if (group.bytes <= all - sum) {
      sum += group.bytes;
      return absl::OkStatus();
    }
    return Bad(absl::StrCat("has ", group.bytes.value, " bytes of ", GroupKindName(group.kind),
                            ", but the stage has ", all.value, ", and groups before this one ",
                            sum.value));
  }

  absl::Status CheckPlacement() const {
    const auto& [group, choice] = Planned();
    if (choice.placement == Placement::kRecompute && group.kind != GroupKind::kActivations) {
      return Bad(absl::StrCat("is to be recomputed, but nothing computes ",
                              GroupKindName(group.kind), " again"));
    }
    if (choice.placement == Placement::kNvmeSwap && input_.topology.drives.empty()) {
      return Bad("is to go to an NVMe drive, but the topology has none");
    }
    return absl::OkStatus();
  }

  // Without a topology, each worker is a device.
  bool Exists(DeviceId device) const {
    const int workers = WorkerCount(input_.schedule) * input_.schedule.replicas;
    const int devices = input_.topology.devices.empty() ? workers : DeviceCount(input_.topology);
    if (!input_.topology.devices.empty() || input_.device_of_worker.empty()) {
      return 0 <= device.value && device.value < devices;
    }
    return std::find(input_.device_of_worker.begin(), input_.device_of_worker.end(), device) !=
           input_.device_of_worker.end();
  }

  // Of the stage's replicas, the first that does not reach the lender, or is not reached by it.
  // Without a topology, each worker reaches all.
  std::optional<DeviceId> OwnerWithoutLink(DeviceId lender) const {
    if (input_.topology.devices.empty()) return std::nullopt;
    const int worker = input_.schedule.worker_of_stage[stage_].value;
    for (int replica = 0; replica < input_.schedule.replicas; ++replica) {
      const int index = replica * WorkerCount(input_.schedule) + worker;
      const DeviceId owner = input_.device_of_worker.empty()
                                 ? DeviceId(index)
                                 : input_.device_of_worker[static_cast<size_t>(index)];
      // Another server's is refused where the copy is made.
      if (ServerOf(input_.topology, owner) != ServerOf(input_.topology, lender)) continue;
      const bool joined = FindLink(input_.topology, owner, lender).has_value() &&
                          FindLink(input_.topology, lender, owner).has_value();
      if (!joined) return owner;
    }
    return std::nullopt;
  }

  absl::Status CheckStripes() const {
    const auto& [group, choice] = Planned();
    if (choice.placement != Placement::kPeerSwap) {
      if (choice.stripes.empty()) return absl::OkStatus();
      return Bad(absl::StrCat("has stripes, but is planned as ", PlacementName(choice.placement)));
    }
    Bytes sum;
    std::set<DeviceId> lenders;
    for (const Stripe& stripe : choice.stripes) {
      if (stripe.bytes <= Bytes(0)) {
        return Bad(absl::StrCat("has a stripe of ", stripe.bytes.value, " bytes on device ",
                                stripe.lender.value, "; 1 is the least"));
      }
      if (!Exists(stripe.lender)) {
        return Bad(absl::StrCat("has a stripe on device ", stripe.lender.value,
                                ", but there is no such device"));
      }
      if (const std::optional<DeviceId> owner = OwnerWithoutLink(stripe.lender)) {
        return Bad(absl::StrCat("has a stripe on device ", stripe.lender.value,
                                ", which no link joins both ways with device ", owner->value,
                                ", where the stage is"));
      }
      if (!lenders.insert(stripe.lender).second) {
        return Bad(absl::StrCat("has two stripes on device ", stripe.lender.value));
      }
      sum += stripe.bytes;
    }
    if (sum == group.bytes) return absl::OkStatus();
    return Bad(absl::StrCat("has stripes of ", sum.value, " bytes together, but is of ",
                            group.bytes.value));
  }

  const SimulationInput& input_;
  const size_t stage_;
  const int first_layer_;
  size_t group_ = 0;
  std::array<std::vector<int>, kGroupKinds> owner_;  // [kind][layer]; -1: none so far
  std::array<Bytes, kGroupKinds> sums_;              // [kind]: of the groups so far
};

}  // namespace

absl::Status CheckPlannedGroups(const SimulationInput& input) {
  const std::vector<StagePlan>& stages = input.memory.stages;
  if (!stages.empty() && stages.size() != input.stages.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the memory plan has ", stages.size(),
                                                   " stages, but the schedule has ",
                                                   input.stages.size()));
  }
  int first_layer = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int buffers = stages[stage].stream_buffers;
    if (buffers < 1 || buffers > kMostStreamBuffers) {
      return absl::InvalidArgumentError(absl::StrCat("the memory plan has ", buffers,
                                                     " stream buffers in stage ", stage,
                                                     "; it can have 1 to ", kMostStreamBuffers));
    }
    if (input.layers.empty()) {
      if (stages[stage].groups.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat("the memory plan has tensor groups in stage ",
                                                     stage,
                                                     ", but there are no costs of its layers"));
    }
    GroupChecker checker(input, stage, first_layer);
    for (size_t group = 0; group < stages[stage].groups.size(); ++group) {
      SIPHON_RETURN_IF_ERROR(checker.Check(group));
    }
    first_layer += static_cast<int>(input.layers[stage].size());
  }
  return absl::OkStatus();
}

}  // namespace siphon
