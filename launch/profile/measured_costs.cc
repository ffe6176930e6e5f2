#include "launch/profile/measured_costs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>

#include "planner/status.h"

namespace siphon {
namespace {

// A clock that sees nothing, or a machine that stood still, makes no plan absurd.
constexpr double kLeastPace = 1e-3;
constexpr double kMostPace = 1e3;

Nanos SumOf(const ActionTimes& times, std::initializer_list<ActionKind> kinds) {
  Nanos sum;
  for (const ActionKind kind : kinds) sum += times[static_cast<size_t>(kind)];
  return sum;
}

double Ratio(Nanos measured, Nanos predicted) {
  return std::clamp(static_cast<double>(measured.value) / static_cast<double>(predicted.value),
                    kLeastPace, kMostPace);
}

StagePace PaceOf(const ActionTimes& predicted, const ActionTimes& measured) {
  const auto of = [&](std::initializer_list<ActionKind> kinds, double otherwise) {
    const Nanos ours = SumOf(predicted, kinds), theirs = SumOf(measured, kinds);
    return ours > Nanos(0) && theirs > Nanos(0) ? Ratio(theirs, ours) : otherwise;
  };
  const double all = of({ActionKind::kForward, ActionKind::kRecompute, ActionKind::kBackward,
                         ActionKind::kBackwardInput, ActionKind::kBackwardWeight},
                        1);
  // Where the backward is not split its halves are not seen, and the other way round.
  const double backward = of({ActionKind::kBackward}, all);
  const double halves = of({ActionKind::kBackwardInput, ActionKind::kBackwardWeight}, backward);
  const double forward = of({ActionKind::kForward}, all);
  return {.forward = forward,
          .recompute = of({ActionKind::kRecompute}, forward),
          .input_backward = of({ActionKind::kBackwardInput}, halves),
          .weight_backward = of({ActionKind::kBackwardWeight}, halves),
          .whole_backward = of({ActionKind::kBackward}, halves),
          .step = of({ActionKind::kStep, ActionKind::kUpdate}, 1)};
}

Nanos Times(Nanos time, double factor) {
  return Nanos(std::llround(static_cast<double>(time.value) * factor));
}

// 0 stays no limit, and no limit that there is becomes none.
BytesPerSecond Slower(BytesPerSecond rate, double factor) {
  if (rate.value == 0) return rate;
  const double slower = static_cast<double>(rate.value) / factor;
  return BytesPerSecond(std::max<int64_t>(1, std::llround(slower)));
}

// Of what several owners share: the mean by bytes.
struct SharedPace {
  double weighted = 0;
  double bytes = 0;
  void Add(const LinkPace& link) {
    weighted += link.factor * static_cast<double>(link.bytes.value);
    bytes += static_cast<double>(link.bytes.value);
  }
  double mean() const { return bytes > 0 ? weighted / bytes : 1; }
};

void SlowLinksBetween(DeviceId a, DeviceId b, double factor, Topology& topology) {
  for (TopologyLink& link : topology.links) {
    const bool forth = link.from == a && link.to == b, back = link.from == b && link.to == a;
    if (forth || back) link.rate = Slower(link.rate, factor);
  }
}

void SlowUplink(double factor, PcieSwitch& uplink) {
  for (BytesPerSecond* const rate :
       {&uplink.to_host, &uplink.from_host, &uplink.to_host_both, &uplink.from_host_both}) {
    *rate = Slower(*rate, factor);
  }
}

}  // namespace

std::vector<ActionTimes> BusyByStage(const std::vector<WorkerTimeline>& workers, int stages) {
  std::vector<ActionTimes> busy(static_cast<size_t>(stages));
  for (const WorkerTimeline& worker : workers) {
    for (const Interval& interval : worker) {
      if (interval.kind != IntervalKind::kBusy) continue;
      ActionTimes& stage = busy.at(static_cast<size_t>(interval.action.stage.value));
      stage[static_cast<size_t>(interval.action.kind)] += interval.end - interval.begin;
    }
  }
  return busy;
}

std::vector<StagePace> PacesOf(const std::vector<ActionTimes>& predicted,
                               const std::vector<ActionTimes>& measured) {
  SIPHON_CHECK(predicted.size() == measured.size(), "both are of the plan's stages");
  std::vector<StagePace> paces;
  for (size_t stage = 0; stage < predicted.size(); ++stage) {
    paces.push_back(PaceOf(predicted[stage], measured[stage]));
  }
  return paces;
}

ModelProfile AtPace(ModelProfile profile, const StagePartition& partition,
                    const std::vector<StagePace>& paces) {
  SIPHON_CHECK(partition.stages.size() == paces.size(), "each stage has a pace");
  for (size_t stage = 0; stage < paces.size(); ++stage) {
    const StagePace& pace = paces[stage];
    const StageRange& layers = partition.stages[stage];
    for (int index = layers.begin; index < layers.end; ++index) {
      LayerProfile& layer = profile.layers[index];
      layer.recompute = Times(RecomputeTime(layer), pace.recompute);
      layer.forward = Times(layer.forward, pace.forward);
      layer.input_backward = Times(layer.input_backward, pace.input_backward);
      layer.weight_backward = Times(layer.weight_backward, pace.weight_backward);
      layer.whole_backward = Times(layer.whole_backward, pace.whole_backward);
      layer.optimizer = Times(layer.optimizer, pace.step);
    }
  }
  return profile;
}

Topology AtPace(Topology topology, const std::vector<LinkPace>& links) {
  std::map<int, SharedPace> uplinks, drives;
  for (const LinkPace& link : links) {
    if (link.bytes == Bytes(0)) continue;
    if (link.place.tier == Placement::kPeerSwap) {
      SlowLinksBetween(link.owner, link.place.lender, link.factor, topology);
    } else if (link.place.tier == Placement::kHostSwap) {
      const std::optional<int> uplink = SwitchOf(topology, link.owner);
      if (uplink.has_value()) uplinks[*uplink].Add(link);
    } else if (!topology.drives.empty()) {
      drives[DriveOf(topology, link.owner)].Add(link);
    }
  }
  for (const auto& [uplink, pace] : uplinks) {
    SlowUplink(pace.mean(), topology.switches[static_cast<size_t>(uplink)]);
  }
  for (const auto& [index, pace] : drives) {
    NvmeDrive& drive = topology.drives[static_cast<size_t>(index)];
    drive.read = Slower(drive.read, pace.mean());
    drive.write = Slower(drive.write, pace.mean());
  }
  return topology;
}

}  // namespace siphon
