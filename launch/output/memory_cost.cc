#include "launch/output/memory_cost.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

std::string ShareOfTime(Nanos part, const MemoryCost& cost) {
  const double share = cost.workers > Nanos(0) ? static_cast<double>(part.value) /
                                                     static_cast<double>(cost.workers.value)
                                               : 0.0;
  return absl::StrFormat("%.1f %% of the workers' time", 100 * share);
}

}  // namespace

void Add(const StepMetrics& step, MemoryCost& cost) {
  ++cost.steps;
  for (const WorkerMetrics& worker : step.workers) {
    cost.to_peers += worker.swapped_d2d;
    cost.to_host += worker.swapped_host;
    cost.to_nvme += worker.swapped_nvme;
    cost.swap_wait += worker.swap_wait;
    cost.recompute += worker.recompute;
    cost.workers += worker.busy + worker.wait;
  }
}

std::string ParkedText(const MemoryCost& cost) {
  std::vector<std::string> places;
  const auto add = [&](Bytes bytes, absl::string_view place) {
    if (bytes == Bytes(0)) return;
    places.push_back(
        absl::StrCat(FormatBytes(Bytes(bytes.value / cost.steps)), " a step to ", place));
  };
  add(cost.to_peers, "other devices");
  add(cost.to_host, "the host");
  add(cost.to_nvme, "the host's drives");
  if (places.empty()) return "";
  return absl::StrCat(absl::StrJoin(places, ", "), "; waits for copies took ",
                      ShareOfTime(cost.swap_wait, cost));
}

std::string RecomputedText(const MemoryCost& cost) {
  return cost.recompute > Nanos(0) ? ShareOfTime(cost.recompute, cost) : "";
}

}  // namespace siphon
