#ifndef SIPHON_SWAP_DEVICE_NUMA_MACHINE_H_
#define SIPHON_SWAP_DEVICE_NUMA_MACHINE_H_

#include <optional>
#include <vector>

namespace siphon {

// A part of a machine's memory with the processors that are near it, by the numbers that the
// operating system gives them.
struct NumaNode {
  int number = 0;
  std::vector<int> processors;  // ascending; none: memory alone
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

struct NumaMachine {
  std::vector<NumaNode> nodes;  // empty: nothing is known of it
  friend bool operator==(const NumaMachine&, const NumaMachine&) = default;
};

// What is known of a worker.
struct NumaWorker {
  std::optional<int> device_node;  // its device is near that one
  std::vector<int> may_run_on;     // processors; empty: not known
  std::optional<int> runs_on;      // a processor, at the moment
};

// The node that a worker's memory belongs to: that of its device; else the one with all processors
// that it may run on; else the one on which it runs. None where the machine has one node or fewer,
// so that there is nothing to choose. Pure.
std::optional<int> NodeOf(const NumaMachine& machine, const NumaWorker& worker);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NUMA_MACHINE_H_
