#include "tests/bench/replay/replay_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/simulator/simulate.h"
#include "planner/status.h"
#include "tests/pipeline/synthetic/synthetic_job.h"

namespace siphon {
namespace {

// The link from the worker's device to where it parks.
CopyLinkRate RateOf(const PlanningProblem& problem, const DeviceMapping& mapping, WorkerId worker,
                    const ParkingPlace& place) {
  const DeviceId device = mapping.device_of_worker[static_cast<size_t>(worker.value)];
  if (place.tier == Placement::kPeerSwap) {
    const TopologyLink link = FindLink(problem.topology, device, place.lender).value();
    return {.rate = link.rate, .latency = link.latency};
  }
  const PcieSwitch& uplink = problem.topology.switches[*SwitchOf(problem.topology, device)];
  return {.rate = uplink.to_host, .latency = uplink.latency};
}

bool IsSwapWait(const Interval& interval) {
  return interval.kind == IntervalKind::kWait && (interval.action.kind == ActionKind::kSwapOutEnd ||
                                                  interval.action.kind == ActionKind::kSwapInEnd);
}

// Books without what a worker lends: the simulator's figure for a plan in which nobody lends.
Bytes OwnPeak(const PlanningProblem& problem, const PlannedStep& planned, size_t worker) {
  PlanningProblem alone = problem;
  alone.capacity.clear();
  MemoryPlan memory = planned.memory;
  for (StagePlan& stage : memory.stages) {
    for (auto& [group, choice] : stage.groups) {
      if (choice.placement != Placement::kPeerSwap) continue;
      choice = {.placement = Placement::kHostSwap};
    }
  }
  const auto simulated =
      Simulate(SimulationOf(alone, planned.mapping, std::move(memory), planned.schedule));
  return simulated.ok() ? Total(simulated->peak[worker]) : Bytes(0);
}

void LookAtBooks(const PlanningProblem& problem, const PlannedStep& planned, SyntheticJob& job,
                 ReplayResult& result) {
  for (size_t worker = 0; worker < planned.mapping.device_of_worker.size(); ++worker) {
    const Bytes own = job.ledger(static_cast<int>(worker)).peak();
    result.peak_above = std::max(result.peak_above, own - OwnPeak(problem, planned, worker));
    const Bytes lent = job.LentBy(planned.mapping.device_of_worker[worker]);
    result.fullest =
        std::max(result.fullest, static_cast<double>((own + lent).value) /
                                     static_cast<double>(problem.capacity[worker].value));
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

absl::StatusOr<ReplayResult> RunReplay(const PlanningProblem& problem, const PlannedStep& planned,
                                       int steps) {
  ReplayResult result;
  PlanningProblem unlimited = problem;
  unlimited.capacity.clear();
  SIPHON_ASSIGN_OR_RETURN(
      result.predicted,
      Simulate(SimulationOf(unlimited, planned.mapping, planned.memory, planned.schedule)));
  for (const auto& waits : result.predicted.exposed_waits) {
    result.predicted_swap_wait += waits[static_cast<size_t>(WaitCause::kSwap)];
  }
  SIPHON_ASSIGN_OR_RETURN(
      const std::unique_ptr<SyntheticJob> job,
      SyntheticJob::Make({.profile = problem.profile,
                          .partition = problem.partition,
                          .schedule = planned.schedule,
                          .memory = planned.memory,
                          .rate_of = [&](WorkerId worker, const ParkingPlace& place) {
                            return RateOf(problem, planned.mapping, worker, place);
                          }}));
  SIPHON_RETURN_IF_ERROR(RunSteps(*job, steps, result));
  LookAtBooks(problem, planned, *job, result);
  return result;
}

}  // namespace siphon
