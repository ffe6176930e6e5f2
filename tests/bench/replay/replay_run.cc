#include "tests/bench/replay/replay_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/status.h"
#include "tests/pipeline/synthetic/synthetic_job.h"

namespace siphon {
namespace {

// The link from the worker's device to where it parks.
CopyLinkRate RateOf(const LiveStep& live, WorkerId worker, const ParkingPlace& place) {
  const Topology& topology = live.problem.topology;
  const DeviceId device = live.step.mapping.device_of_worker[static_cast<size_t>(worker.value)];
  if (place.tier == Placement::kPeerSwap) {
    const TopologyLink link = FindLink(topology, device, place.lender).value();
    return {.rate = link.rate, .latency = link.latency};
  }
  const PcieSwitch& uplink = topology.switches[*SwitchOf(topology, device)];
  return {.rate = uplink.to_host, .latency = uplink.latency};
}

// Between the devices of two workers, through the host where no link joins them.
CopyLinkRate MessageRate(const LiveStep& live, const Channel& channel) {
  const Topology& topology = live.problem.topology;
  const auto device_of = [&](WorkerId worker) {
    return live.step.mapping.device_of_worker[static_cast<size_t>(worker.value)];
  };
  const DeviceId from = device_of(channel.from);
  const DeviceId to = device_of(channel.to);
  if (const auto link = FindLink(topology, from, to)) {
    return {.rate = link->rate, .latency = link->latency};
  }
  const PcieSwitch& up = topology.switches[*SwitchOf(topology, from)];
  const PcieSwitch& down = topology.switches[*SwitchOf(topology, to)];
  return {.rate = std::min(up.to_host, down.from_host), .latency = up.latency + down.latency};
}

bool IsSwapWait(const Interval& interval) {
  return interval.kind == IntervalKind::kWait && (interval.action.kind == ActionKind::kSwapOutEnd ||
                                                  interval.action.kind == ActionKind::kSwapInEnd);
}

void LookAtBooks(const LiveStep& live, SyntheticJob& job, ReplayResult& result) {
  const std::vector<DeviceId>& devices = live.step.mapping.device_of_worker;
  for (size_t worker = 0; worker < devices.size(); ++worker) {
    const Bytes held = job.ledger(static_cast<int>(worker)).peak() + job.LentBy(devices[worker]);
    result.peak_above = std::max(result.peak_above, held - Total(live.step.simulated.peak[worker]));
    if (live.problem.capacity.empty()) continue;
    result.fullest =
        std::max(result.fullest, static_cast<double>(held.value) /
                                     static_cast<double>(live.problem.capacity[worker].value));
  }
}

absl::Status RunSteps(SyntheticJob& job, int steps, ReplayResult& result) {
  for (int number = 0; number <= steps; ++number) {
    const SyntheticStep step = job.Run(job.schedule(), StepMode::kTrain, number,
                                       {.update = number + 1, .learning_rate = 1e-4});
    result.swap_wait = Nanos(0);
    result.swapped_out.clear();
    for (const auto& report : step.reports) {
      SIPHON_RETURN_IF_ERROR(report.status());
      for (const Interval& interval : report->timeline) {
        if (IsSwapWait(interval)) result.swap_wait += interval.end - interval.begin;
      }
      for (const auto& [tier, bytes] : report->swapped_out) result.swapped_out[tier] += bytes;
    }
    if (number > 0) result.steps.push_back(step.time);
  }
  std::sort(result.steps.begin(), result.steps.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReplayResult> RunReplay(const LiveStep& live, int steps) {
  ReplayResult result;
  for (const auto& waits : live.step.simulated.exposed_waits) {
    result.predicted_swap_wait += waits[static_cast<size_t>(WaitCause::kSwap)];
  }
  SIPHON_ASSIGN_OR_RETURN(
      const std::unique_ptr<SyntheticJob> job,
      SyntheticJob::Make(
          {.profile = live.problem.profile,
           .partition = live.problem.partition,
           .schedule = live.step.schedule,
           .memory = live.step.memory,
           .rate_of = [&](WorkerId worker,
                          const ParkingPlace& place) { return RateOf(live, worker, place); },
           .host_step =
               SimulationOf(live.problem, live.step.mapping, live.step.memory, live.step.schedule)
                   .host_step,
           .message_rate_of = [&](const Channel& channel) { return MessageRate(live, channel); }}));
  SIPHON_RETURN_IF_ERROR(RunSteps(*job, steps, result));
  LookAtBooks(live, *job, result);
  return result;
}

}  // namespace siphon
