#include "launch/run/record/plan_deviation.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "launch/run/record/compare_step.h"

namespace siphon {
namespace {

constexpr double kPeakMargin = 0.05;
constexpr double kTimeMargin = 0.25;
constexpr int kFirstStep = 3;  // those before it warm up
constexpr int kLastStep = 9;

double Excess(int64_t measured, int64_t predicted) {
  return static_cast<double>(measured) / static_cast<double>(std::max<int64_t>(predicted, 1)) - 1;
}

}  // namespace

PlanDeviation::PlanDeviation(const SimulatedStep& predicted, Known known)
    : predicted_{.step = predicted.step_time}, watches_time_(known.times) {
  for (const MemoryByKind& peak : predicted.peak) {
    if (known.memory) peaks_.push_back(Total(peak));
  }
  const WorkersTime workers = TimeOf(predicted);
  predicted_.busy = workers.Busy();
  predicted_.copies = workers.copies;
  predicted_.other = workers.other;
}

std::optional<std::string> PlanDeviation::Note(const StepMetrics& step) {
  ++steps_;
  if (std::optional<std::string> peak = NotePeak(step); peak.has_value()) return peak;
  if (!watches_time_ || steps_ < kFirstStep) return std::nullopt;
  Times& times = measured_.emplace_back(Times{.step = step.duration});
  for (const WorkerMetrics& worker : step.workers) {
    times.busy += worker.busy;
    times.copies += worker.swap_wait;
    times.other += worker.wait - worker.swap_wait;
  }
  if (steps_ < kLastStep) return std::nullopt;
  watches_time_ = false;
  return NoteTime();
}

std::optional<std::string> PlanDeviation::NotePeak(const StepMetrics& step) {
  for (size_t worker = 0; worker < std::min(peaks_.size(), step.workers.size()); ++worker) {
    const Bytes peak = step.workers[worker].peak;
    const double excess = Excess(peak.value, peaks_[worker].value);
    if (excess <= kPeakMargin) continue;
    const std::string text =
        absl::StrFormat("worker %d held %s in step %d, %.1f %% more than the predicted %s", worker,
                        FormatBytes(peak), step.step, 100 * excess, FormatBytes(peaks_[worker]));
    peaks_.clear();
    return text;
  }
  return std::nullopt;
}

std::optional<std::string> PlanDeviation::NoteTime() {
  const auto median = [this](Nanos Times::*part) {
    std::vector<Nanos> values;
    for (const Times& times : measured_) values.push_back(times.*part);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const Nanos step = median(&Times::step);
  const double excess = Excess(step.value, predicted_.step.value);
  if (excess <= kTimeMargin) return std::nullopt;
  const Nanos busy = median(&Times::busy) - predicted_.busy;
  const Nanos copies = median(&Times::copies) - predicted_.copies;
  const Nanos other = median(&Times::other) - predicted_.other;
  const absl::string_view cause =
      busy >= std::max(copies, other) ? "computing takes longer than profiled"
      : copies >= other               ? "copies of what is parked take longer"
                                      : "messages and waits for other workers take longer";
  return absl::StrFormat("steps take %s, %.0f %% longer than the predicted %s: %s",
                         FormatNanos(step), 100 * excess, FormatNanos(predicted_.step), cause);
}

}  // namespace siphon
