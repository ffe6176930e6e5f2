#ifndef SIPHON_SWAP_DEVICE_NUMA_PLACE_H_
#define SIPHON_SWAP_DEVICE_NUMA_PLACE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "swap/device/numa_machine.h"

namespace siphon {

// Where memory of one worker shall be. By hwloc; without it, or with one node, anywhere, as it
// comes: then nothing here does anything.
//
// Thread-safety: const methods, any thread.
class NumaPlace {
 public:
  // Of the worker whose thread this is (NodeOf). `device_node`: NumaWorker's.
  static NumaPlace OfThisThread(std::optional<int> device_node = std::nullopt);
  // For tests: of a worker of a machine that hwloc makes up ("numa:2 core:2 pu:1").
  static NumaPlace OnSynthetic(const std::string& machine, const NumaWorker& worker);

  NumaPlace();  // anywhere
  NumaPlace(NumaPlace&& other) noexcept;
  NumaPlace& operator=(NumaPlace&& other) noexcept;
  ~NumaPlace();

  // None: anywhere.
  std::optional<int> node() const;
  // Pages of `memory` that nobody has touched yet shall be on the node, wherever whoever touches
  // them first runs; of pages at its ends all of them. Where the node is full or the system forbids
  // it, they are where they come, which is slower and no error. True: the system will do so.
  bool Place(absl::Span<std::byte> memory) const;
  // The node of a page that is there; none where the system does not tell.
  std::optional<int> NodeOfPage(const std::byte* memory) const;

 private:
  struct Impl;
  explicit NumaPlace(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;  // null: anywhere
};

// What hwloc knows of this machine, or of one that it makes up. Without hwloc nothing.
NumaMachine ReadNumaMachine(const std::string& synthetic = "");

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NUMA_PLACE_H_
