#include "swap/device/numa_machine.h"

#include "absl/algorithm/container.h"

namespace siphon {
namespace {

bool Has(const NumaNode& node, int processor) {
  return absl::c_binary_search(node.processors, processor);
}

}  // namespace

std::optional<int> NodeOf(const NumaMachine& machine, const NumaWorker& worker) {
  if (machine.nodes.size() < 2) return std::nullopt;
  for (const NumaNode& node : machine.nodes) {
    if (worker.device_node == node.number) return node.number;
  }
  for (const NumaNode& node : machine.nodes) {
    const auto is_here = [&](int processor) { return Has(node, processor); };
    if (!worker.may_run_on.empty() && absl::c_all_of(worker.may_run_on, is_here)) {
      return node.number;
    }
  }
  for (const NumaNode& node : machine.nodes) {
    if (worker.runs_on.has_value() && Has(node, *worker.runs_on)) return node.number;
  }
  return std::nullopt;
}

}  // namespace siphon
