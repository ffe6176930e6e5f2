#include "launch/commands/plan_reasons.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"

namespace siphon {
namespace {

// Of the chosen way, where that is copies.
Nanos CopiesOf(const ExplainedGroup& group) {
  const Placement chosen = group.planned.choice.placement;
  const std::optional<Nanos>& copies = chosen == Placement::kPeerSwap   ? group.each.peers
                                       : chosen == Placement::kHostSwap ? group.each.host
                                                                        : group.each.nvme;
  return copies.value_or(Nanos(0));
}

bool IsNeededByPasses(GroupKind kind) {
  return kind == GroupKind::kParameters || kind == GroupKind::kGradients;
}

std::string WhyKept(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  if (IsNeededByPasses(group.planned.group.kind)) return "every microbatch needs them";
  const auto index = static_cast<size_t>(worker.value);
  const Bytes capacity = CapacityOf(studied, index);
  if (capacity == Bytes(0)) return "nothing limits the worker's memory";
  return absl::StrCat("the worker has room for them: with all that it keeps it holds ",
                      FormatBytes(PeakOf(*studied.step, index)), " of ", FormatBytes(capacity));
}

// " hidden", " exposed by 1.00 ms", or how often they are; empty: none is known.
std::string ExposedText(const ExplainedGroup& group, Nanos copies) {
  if (IsNeededByPasses(group.planned.group.kind)) return " each time";
  const std::optional<Nanos> exposed = ExposedOf(group, copies);
  if (!exposed.has_value()) return "";
  return *exposed == Nanos(0) ? " hidden" : absl::StrCat(" exposed by ", FormatNanos(*exposed));
}

// What the group would add to its worker's memory at most, beside what is free at its fullest.
std::string KeepText(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  const auto index = static_cast<size_t>(worker.value);
  const Bytes capacity = CapacityOf(studied, index);
  const std::string more = FormatBytes(group.planned.group.bytes * group.goes);
  if (capacity == Bytes(0)) return absl::StrCat("keep ", more, " (no limit)");
  const Bytes free = std::max(Bytes(0), capacity - PeakOf(*studied.step, index));
  return absl::StrCat("keep up to ", more, " (", FormatBytes(free), " free)");
}

// What each way that was not taken would cost, or why there is none.
std::string OtherWays(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  const Placement chosen = group.planned.choice.placement;
  std::vector<std::string> ways;
  if (group.each.recompute.has_value() && chosen != Placement::kRecompute) {
    ways.push_back(absl::StrCat("recompute ", FormatNanos(*group.each.recompute), " exposed"));
  }
  const auto offer = [&](absl::string_view way, const std::optional<Nanos>& copies) {
    if (!copies.has_value()) return;
    ways.push_back(absl::StrCat(way, " ", FormatNanos(*copies), ExposedText(group, *copies)));
  };
  if (!group.each.no_peers.empty()) {
    ways.push_back(absl::StrCat(PlacementName(Placement::kPeerSwap), " ", group.each.no_peers));
  } else if (chosen != Placement::kPeerSwap) {
    offer(PlacementName(Placement::kPeerSwap), group.each.peers);
  }
  if (group.steps_on_host) {
    offer("host_swap, steps on device", group.each.host);
  } else if (chosen != Placement::kHostSwap) {
    offer(PlacementName(Placement::kHostSwap), group.each.host);
  }
  if (chosen != Placement::kNvmeSwap) offer(PlacementName(Placement::kNvmeSwap), group.each.nvme);
  if (chosen != Placement::kKeep) ways.push_back(KeepText(group, studied, worker));
  return ways.empty() ? "" : absl::StrCat("; else ", absl::StrJoin(ways, ", "));
}

std::string WhyAway(const ExplainedGroup& group) {
  const GroupKind kind = group.planned.group.kind;
  const Nanos time = CopiesOf(group);
  const std::string copies = absl::StrCat("copies alone take ", FormatNanos(time));
  if (IsNeededByPasses(kind)) {
    const bool few = group.stream_buffers < kMostStreamBuffers;
    const std::string buffers = absl::StrCat(", through ", group.stream_buffers, " of ",
                                             kMostStreamBuffers, " buffers to save memory");
    return absl::StrCat("there only while a pass is at these layers", few ? buffers : "", "; ",
                        copies, " each time");
  }
  if (kind == GroupKind::kOptimizerState) {
    return absl::StrCat("needed by the optimizer step only; ", copies,
                        ", with those of all groups of its worker behind each other");
  }
  const std::string streams =
      group.leaves_under_forward
          ? absl::StrCat("leaves under its forward",
                         group.comes_under_backward ? " and comes in under its backward" : "", "; ")
      : group.comes_under_backward ? "comes in under its backward; "
                                   : "";
  if (!group.kept_gap.has_value()) return streams + copies;
  return absl::StrCat(streams, copies, ",", ExposedText(group, time),
                      ": with everything kept they are ", FormatNanos(*group.kept_gap),
                      " without a use");
}

std::string WhyChosen(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  if (group.steps_on_host) {
    return "the host steps these layers: only gradients and parameters are copied";
  }
  switch (group.planned.choice.placement) {
    case Placement::kKeep:
      return WhyKept(group, studied, worker);
    case Placement::kRecompute:
      return absl::StrCat("computing them again takes ",
                          FormatNanos(group.each.recompute.value_or(Nanos(0))), " of a microbatch");
    default:
      return WhyAway(group);
  }
}

// What each device has left at its fullest; none: there is no limit.
std::vector<std::optional<Bytes>> FreeBytes(const StudiedPlan& studied) {
  const Topology& topology = studied.problem.topology;
  std::vector<std::optional<Bytes>> free;
  for (const TopologyDevice& device : topology.devices) {
    free.push_back(device.memory == Bytes(0) ? std::nullopt : std::optional<Bytes>(device.memory));
  }
  for (const HolderPeak& holder : studied.step->other_peaks) {
    for (size_t device = 0; device < free.size(); ++device) {
      if (holder.name != absl::StrCat("device ", device) || !free[device].has_value()) continue;
      *free[device] -= holder.bytes;
    }
  }
  const std::vector<DeviceId>& devices = studied.plan.mapping.device_of_worker;
  for (size_t worker = 0; worker < studied.step->peak.size(); ++worker) {
    const size_t device = devices.empty() ? worker : static_cast<size_t>(devices[worker].value);
    if (device >= free.size()) continue;
    const Bytes capacity = CapacityOf(studied, worker);
    free[device] = capacity == Bytes(0)
                       ? std::nullopt
                       : std::optional<Bytes>(capacity - PeakOf(*studied.step, worker));
  }
  return free;
}

}  // namespace

std::string ReasonOf(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker) {
  return WhyChosen(group, studied, worker) + OtherWays(group, studied, worker);
}

std::string NoRoomWithPeers(const StudiedPlan& studied, DeviceId device, Bytes bytes) {
  // Workers of one machine have links in plans that use them.
  if (DeviceCount(studied.problem.topology) == 0) {
    return absl::StrCat("takes links, with which ", studied.strategy, " does not plan here");
  }
  const std::vector<std::optional<Bytes>> free = FreeBytes(studied);
  Bytes room;
  bool linked = false;
  for (const TopologyLink& link : studied.problem.topology.links) {
    if (link.from != device) continue;
    linked = true;
    const std::optional<Bytes>& there = free[link.to.value];
    if (!there.has_value()) return "";
    room += std::max(Bytes(0), *there);
  }
  if (!linked) return "has no link";
  if (room >= bytes) return "";
  return absl::StrCat("has no room (", FormatBytes(room), " free, all of them away are ",
                      FormatBytes(bytes), ")");
}

}  // namespace siphon
