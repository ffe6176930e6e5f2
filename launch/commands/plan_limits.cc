#include "launch/commands/plan_limits.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace siphon {
namespace {

// A step that is so much longer than with everything kept is limited by what saves memory.
constexpr int kFeltPercent = 1;
// A worker that computes so much of the step leaves a better plan little to gain.
constexpr int kBusyPercent = 90;

Nanos WaitOf(const TimeShares& shares, WaitCause cause) {
  return shares.waits[static_cast<size_t>(cause)];
}

std::string Percent(Nanos part, Nanos whole) {
  const double share =
      whole.value == 0 ? 0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
  return absl::StrFormat("%.1f %%", 100 * share);
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

// What costs most of what a plan can change; compute where one worker is busy anyway.
StepLimit LimitOf(const std::vector<TimeShares>& workers, Nanos step, Nanos saving_memory) {
  const Nanos swaps = SumOf(workers, Swaps);
  const Nanos recomputed = SumOf(workers, Recomputed);
  const Nanos transfers = SumOf(workers, Transfers);
  if (saving_memory * 100 > step * kFeltPercent && swaps + recomputed > Nanos(0)) {
    return swaps >= recomputed ? StepLimit::kSwaps : StepLimit::kRecompute;
  }
  const TimeShares& busiest = workers[WorkerWithMost(workers, Busy)];
  if (Busy(busiest) * 100 >= step * kBusyPercent) return StepLimit::kCompute;
  return transfers > SumOf(workers, Idle) ? StepLimit::kTransfers : StepLimit::kPipeline;
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
      return WorkerWithMost(workers, Idle);
  }
  return 0;
}

std::string LimitText(const StepDiagnosis& diagnosis, const TimeShares& shares, Nanos step) {
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

StepDiagnosis Diagnose(const SimulatedStep& step, const SimulatedStep& kept) {
  StepDiagnosis diagnosis;
  diagnosis.saving_memory = std::max(Nanos(0), step.step_time - kept.step_time);
  for (const LaneTimeline& lane : step.lanes) {
    if (!diagnosis.busiest.has_value() || lane.busy > diagnosis.busiest->busy) {
      diagnosis.busiest = lane;
    }
  }
  const std::vector<TimeShares> workers = SharesOfWorkers(step);
  if (workers.empty()) return diagnosis;
  diagnosis.limit = LimitOf(workers, step.step_time, diagnosis.saving_memory);
  diagnosis.worker = WorkerOf(diagnosis.limit, workers);
  return diagnosis;
}

std::string DiagnosisText(const StepDiagnosis& diagnosis, const SimulatedStep& step) {
  const std::vector<TimeShares> workers = SharesOfWorkers(step);
  std::string text = LimitText(diagnosis, workers[diagnosis.worker], step.step_time);
  if (diagnosis.busiest.has_value()) {
    absl::StrAppend(&text, "; the busiest link, ", diagnosis.busiest->name, ", is in use ",
                    Percent(diagnosis.busiest->busy, step.step_time));
  }
  return text;
}

absl::string_view StepLimitName(StepLimit limit) {
  constexpr std::array<absl::string_view, 5> kNames = {"compute", "pipeline", "transfers", "swaps",
                                                       "recompute"};
  return kNames[static_cast<size_t>(limit)];
}

}  // namespace siphon
