#include "launch/commands/plan_limits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

// A step that is so much longer than with everything kept is limited by what saves memory.
constexpr int kFeltPercent = 1;
// A worker that computes so much of the step leaves a better plan little to gain.
constexpr int kBusyPercent = 90;
// A lender with less than one part in so many left has no more to lend that would help.
constexpr int64_t kFullPart = 50;
// A lane whose copies others slow for so much of the time in which it keeps its worker waiting is
// limited by what they share.
constexpr int kSlowedPercent = 10;

Nanos WaitOf(const TimeShares& shares, WaitCause cause) {
  return shares.waits[static_cast<size_t>(cause)];
}

std::string Percent(Nanos part, Nanos whole) {
  const double share =
      whole.value == 0 ? 0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
  return FormatPercent(share);
}

// The worker with most of it.
template <typename Measure>
int WorkerWithMost(const std::vector<TimeShares>& workers, const Measure& measure) {
  const auto most = std::max_element(
      workers.begin(), workers.end(),
      [&](const TimeShares& a, const TimeShares& b) { return measure(a) < measure(b); });
  return static_cast<int>(most - workers.begin());
}

Nanos Busy(const TimeShares& shares) { return shares.compute + shares.recompute; }
Nanos Swaps(const TimeShares& shares) { return WaitOf(shares, WaitCause::kSwap); }
Nanos Transfers(const TimeShares& shares) { return WaitOf(shares, WaitCause::kTransfer); }
Nanos Recomputed(const TimeShares& shares) { return shares.recompute; }
Nanos Idle(const TimeShares& shares) {
  return shares.idle + WaitOf(shares, WaitCause::kPredecessor) +
         WaitOf(shares, WaitCause::kStepEnd);
}

template <typename Measure>
Nanos SumOf(const std::vector<TimeShares>& workers, const Measure& measure) {
  Nanos sum;
  for (const TimeShares& shares : workers) sum += measure(shares);
  return sum;
}

// As the simulator names it.
constexpr absl::string_view kHostStepsLane = "optimizer steps on the host";

Nanos Overlap(const Interval& a, Nanos begin, Nanos end) {
  return std::max(Nanos(0), std::min(a.end, end) - std::max(a.begin, begin));
}

// How long the host steps while no worker has anything left to compute.
Nanos HostStepsAlone(const SimulatedStep& step) {
  Nanos last;
  for (const WorkerTimeline& worker : step.workers) {
    for (const Interval& interval : worker) {
      if (interval.kind == IntervalKind::kBusy) last = std::max(last, interval.end);
    }
  }
  Nanos alone;
  for (const LaneTimeline& lane : step.lanes) {
    if (lane.name != kHostStepsLane) continue;
    for (const Interval& interval : lane.intervals) {
      alone += Overlap(interval, last, step.step_time);
    }
  }
  return alone;
}

// What costs most of what a plan can change; compute where one worker is busy anyway.
StepLimit LimitOf(const SimulatedStep& step, const std::vector<TimeShares>& workers,
                  Nanos saving_memory) {
  const Nanos swaps = SumOf(workers, Swaps);
  const Nanos recomputed = SumOf(workers, Recomputed);
  const Nanos transfers = SumOf(workers, Transfers);
  const Nanos host = HostStepsAlone(step) * static_cast<int64_t>(workers.size());
  if (saving_memory * 100 > step.step_time * kFeltPercent && swaps + recomputed + host > Nanos(0)) {
    if (host > swaps && host > recomputed) return StepLimit::kHostSteps;
    return swaps >= recomputed ? StepLimit::kSwaps : StepLimit::kRecompute;
  }
  const TimeShares& busiest = workers[WorkerWithMost(workers, Busy)];
  if (Busy(busiest) * 100 >= step.step_time * kBusyPercent) return StepLimit::kCompute;
  return transfers > SumOf(workers, Idle) ? StepLimit::kTransfers : StepLimit::kPipeline;
}

Nanos WaitingTime(const SimulatedStep& step, int worker) {
  Nanos waiting;
  for (const Interval& interval : step.workers[worker]) {
    if (interval.kind == IntervalKind::kWait) waiting += interval.end - interval.begin;
  }
  return waiting;
}

// Whether what is on the lane can keep the worker waiting for that.
bool IsLaneOf(const LaneTimeline& lane, StepLimit limit, int worker, DeviceId device) {
  if (limit == StepLimit::kTransfers) {
    return absl::StrContains(lane.name, absl::StrCat(" to worker ", worker, ","));
  }
  return absl::StartsWith(lane.name, absl::StrCat("device ", device.value, ",")) ||
         absl::StartsWith(lane.name, absl::StrCat("worker ", worker, ", copies"));
}

// Of the worker's waits.
Nanos OverlapWithWaits(const WorkerTimeline& worker, Nanos begin, Nanos end) {
  Nanos overlap;
  for (const Interval& wait : worker) {
    if (wait.kind == IntervalKind::kWait) overlap += Overlap(wait, begin, end);
  }
  return overlap;
}

// The one by which the lane's copies are slowed longest while the worker waits.
void FindShared(const WorkerTimeline& worker, StepDiagnosis& diagnosis) {
  std::map<std::string, Nanos> slowed_by;
  for (const SlowedTime& slowed : diagnosis.binding->slowed) {
    slowed_by[slowed.by] += OverlapWithWaits(worker, slowed.begin, slowed.end);
  }
  const auto most =
      std::max_element(slowed_by.begin(), slowed_by.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == slowed_by.end() || most->second * 100 < diagnosis.in_use * kSlowedPercent) return;
  diagnosis.shared = most->first;
  diagnosis.slowed = most->second;
}

void FindBinding(const SimulatedStep& step, DeviceId device, StepDiagnosis& diagnosis) {
  const bool waits =
      diagnosis.limit == StepLimit::kSwaps || diagnosis.limit == StepLimit::kTransfers;
  if (!waits) return;
  const WorkerTimeline& worker = step.workers[diagnosis.worker];
  for (const LaneTimeline& lane : step.lanes) {
    if (!IsLaneOf(lane, diagnosis.limit, diagnosis.worker, device)) continue;
    Nanos in_use;
    for (const Interval& copy : lane.intervals) {
      in_use += OverlapWithWaits(worker, copy.begin, copy.end);
    }
    if (in_use <= diagnosis.in_use) continue;
    diagnosis.in_use = in_use;
    diagnosis.binding = lane;
  }
  if (diagnosis.binding.has_value()) FindShared(worker, diagnosis);
}

int WorkerOf(StepLimit limit, const std::vector<TimeShares>& workers) {
  switch (limit) {
    case StepLimit::kCompute:
      return WorkerWithMost(workers, Busy);
    case StepLimit::kTransfers:
      return WorkerWithMost(workers, Transfers);
    case StepLimit::kSwaps:
      return WorkerWithMost(workers, Swaps);
    case StepLimit::kRecompute:
      return WorkerWithMost(workers, Recomputed);
    case StepLimit::kPipeline:
    case StepLimit::kHostSteps:
      return WorkerWithMost(workers, Idle);
  }
  return 0;
}

std::string LimitText(const StepDiagnosis& diagnosis, const TimeShares& shares,
                      const SimulatedStep& simulated) {
  const Nanos step = simulated.step_time;
  const std::string worker = absl::StrCat("worker ", diagnosis.worker);
  switch (diagnosis.limit) {
    case StepLimit::kCompute:
      return absl::StrCat("compute: ", worker, " is busy ", Percent(Busy(shares), step),
                          " of the step");
    case StepLimit::kTransfers:
      return absl::StrCat("transfers: ", worker, " waits ", FormatNanos(Transfers(shares)),
                          " for messages of its neighbours");
    case StepLimit::kSwaps:
      return absl::StrCat("swaps: ", worker, " waits ", FormatNanos(Swaps(shares)),
                          " for tensors on their way");
    case StepLimit::kRecompute:
      return absl::StrCat("recomputation: ", worker, " computes again for ",
                          FormatNanos(Recomputed(shares)));
    case StepLimit::kPipeline:
      return absl::StrCat("the pipeline: ", worker, " has nothing to do for ",
                          FormatNanos(Idle(shares)),
                          ", while it fills, drains and waits for its neighbours");
    case StepLimit::kHostSteps:
      return absl::StrCat("optimizer steps on the host: they take ",
                          FormatNanos(HostStepsAlone(simulated)), " when all workers are through");
  }
  return "";
}

}  // namespace

std::vector<TimeShares> SharesOfWorkers(const SimulatedStep& step) {
  std::vector<TimeShares> workers;
  for (size_t worker = 0; worker < step.workers.size(); ++worker) {
    TimeShares& shares = workers.emplace_back();
    for (const Interval& interval : step.workers[worker]) {
      if (interval.kind == IntervalKind::kWait) continue;
      const bool again = interval.action.kind == ActionKind::kRecompute;
      (again ? shares.recompute : shares.compute) += interval.end - interval.begin;
    }
    shares.waits = step.exposed_waits[worker];
    shares.idle = step.step_time - Busy(shares);
    for (const Nanos wait : shares.waits) shares.idle -= wait;
  }
  return workers;
}

StepDiagnosis Diagnose(const SimulatedStep& step, const SimulatedStep& kept,
                       const std::vector<DeviceId>& device_of_worker) {
  StepDiagnosis diagnosis;
  diagnosis.saving_memory = std::max(Nanos(0), step.step_time - kept.step_time);
  for (const LaneTimeline& lane : step.lanes) {
    if (!diagnosis.busiest.has_value() || lane.busy > diagnosis.busiest->busy) {
      diagnosis.busiest = lane;
    }
  }
  const std::vector<TimeShares> workers = SharesOfWorkers(step);
  if (workers.empty()) return diagnosis;
  diagnosis.limit = LimitOf(step, workers, diagnosis.saving_memory);
  diagnosis.worker = WorkerOf(diagnosis.limit, workers);
  const DeviceId device =
      device_of_worker.empty() ? DeviceId(diagnosis.worker) : device_of_worker[diagnosis.worker];
  FindBinding(step, device, diagnosis);
  return diagnosis;
}

std::string DiagnosisText(const StepDiagnosis& diagnosis, const SimulatedStep& step) {
  const std::vector<TimeShares> workers = SharesOfWorkers(step);
  std::string text = LimitText(diagnosis, workers[diagnosis.worker], step);
  if (!diagnosis.full_lenders.empty()) {
    absl::StrAppend(
        &text, "; what it lends from has no more room: ",
        absl::StrJoin(diagnosis.full_lenders, ", ", [](std::string* list, DeviceId lender) {
          absl::StrAppend(list, "device ", lender.value);
        }));
  }
  if (diagnosis.binding.has_value()) {
    absl::StrAppend(&text, "; while it waits for anything, ", diagnosis.binding->name,
                    " is in use ", Percent(diagnosis.in_use, WaitingTime(step, diagnosis.worker)));
    if (!diagnosis.shared.empty()) {
      absl::StrAppend(&text, ", and for ", Percent(diagnosis.slowed, diagnosis.in_use),
                      " of that slowed by other copies over ", diagnosis.shared);
    }
  } else if (diagnosis.busiest.has_value()) {
    absl::StrAppend(&text, "; the busiest link, ", diagnosis.busiest->name, ", is in use ",
                    Percent(diagnosis.busiest->busy, step.step_time));
  }
  return text;
}

StepDiagnosis DiagnosePlan(const StudiedPlan& studied) {
  const std::vector<DeviceId>& devices = studied.plan.mapping.device_of_worker;
  StepDiagnosis diagnosis = Diagnose(*studied.step, studied.kept, devices);
  const bool saves =
      diagnosis.limit == StepLimit::kSwaps || diagnosis.limit == StepLimit::kRecompute;
  std::set<DeviceId> lenders;
  bool otherwise = false;
  for (size_t stage = 0; saves && stage < studied.plan.memory.stages.size(); ++stage) {
    if (studied.plan.training.worker_of_stage[stage].value != diagnosis.worker) continue;
    for (const auto& [group, choice] : studied.plan.memory.stages[stage].groups) {
      for (const Stripe& stripe : choice.stripes) lenders.insert(stripe.lender);
      otherwise = otherwise || (choice.placement != Placement::kKeep && choice.stripes.empty());
    }
  }
  const auto has_room = [&](DeviceId lender) {
    for (size_t worker = 0; worker < studied.step->peak.size(); ++worker) {
      const DeviceId device =
          devices.empty() ? DeviceId(static_cast<int>(worker)) : devices[worker];
      if (device != lender) continue;
      const Bytes capacity = CapacityOf(studied, worker);
      return capacity == Bytes(0) ||
             (capacity - PeakOf(*studied.step, worker)) * kFullPart > capacity;
    }
    return true;  // a device without a worker
  };
  if (otherwise && absl::c_none_of(lenders, has_room)) {
    diagnosis.full_lenders.assign(lenders.begin(), lenders.end());
  }
  return diagnosis;
}

absl::string_view StepLimitName(StepLimit limit) {
  constexpr std::array<absl::string_view, 6> kNames = {"compute", "pipeline",  "transfers",
                                                       "swaps",   "recompute", "host_steps"};
  return kNames[static_cast<size_t>(limit)];
}

}  // namespace siphon
