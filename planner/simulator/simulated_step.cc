#include "planner/simulator/simulated_step.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {

absl::string_view WaitCauseName(WaitCause cause) {
  switch (cause) {
    case WaitCause::kPredecessor:
      return "predecessor";
    case WaitCause::kTransfer:
      return "transfer";
    case WaitCause::kSwap:
      return "swap";
    case WaitCause::kStepEnd:
      return "step end";
  }
  return "unknown cause";
}

std::string IdleDeviceName(DeviceId device) { return absl::StrCat("device ", device.value); }

std::vector<Bytes> TotalPeaks(const SimulatedStep& step) {
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : step.peak) peaks.push_back(Total(peak));
  return peaks;
}

Bytes PeakOfIdleDevice(const SimulatedStep& step, DeviceId device) {
  const auto found = std::find_if(
      step.other_peaks.begin(), step.other_peaks.end(),
      [name = IdleDeviceName(device)](const HolderPeak& peak) { return peak.name == name; });
  return found == step.other_peaks.end() ? Bytes(0) : found->bytes;
}

std::string TimelineText(const SimulatedStep& step) {
  std::string text;
  for (size_t worker = 0; worker < step.workers.size(); ++worker) {
    for (const Interval& interval : step.workers[worker]) {
      absl::StrAppend(&text, interval.kind == IntervalKind::kWait ? "wait " : "",
                      ToString(interval.action), " [", interval.begin.value, ",",
                      interval.end.value, ") worker ", worker, "\n");
    }
  }
  return text;
}

}  // namespace siphon
