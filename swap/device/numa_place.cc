#include "swap/device/numa_place.h"

#include <utility>
#include <vector>

#ifdef SIPHON_HWLOC
#include <hwloc.h>
#endif

namespace siphon {

#ifdef SIPHON_HWLOC

namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using HwlocBitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

HwlocBitmap EmptyBitmap() { return HwlocBitmap(hwloc_bitmap_alloc()); }

// Null where hwloc cannot say anything.
HwlocTopology LoadTopology(const std::string& synthetic) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  HwlocTopology topology(made);
  // All its types: where packages and cores are filtered, every node counts as near all processors.
  const bool wrong =
      !synthetic.empty() && hwloc_topology_set_synthetic(made, synthetic.c_str()) != 0;
  if (wrong || hwloc_topology_load(made) != 0) return nullptr;
  return topology;
}

std::vector<int> NumbersIn(hwloc_const_bitmap_t bitmap) {
  std::vector<int> numbers;
  for (int next = hwloc_bitmap_first(bitmap); next >= 0; next = hwloc_bitmap_next(bitmap, next)) {
    numbers.push_back(next);
  }
  return numbers;
}

NumaMachine MachineOf(hwloc_topology_t topology) {
  NumaMachine machine;
  const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  for (int index = 0; index < nodes; ++index) {
    const hwloc_obj_t node =
        hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(index));
    machine.nodes.push_back({static_cast<int>(node->os_index), NumbersIn(node->cpuset)});
  }
  return machine;
}

NumaWorker WorkerOfThisThread(hwloc_topology_t topology, std::optional<int> device_node) {
  NumaWorker worker{.device_node = device_node};
  const HwlocBitmap processors = EmptyBitmap();
  if (hwloc_get_cpubind(topology, processors.get(), HWLOC_CPUBIND_THREAD) == 0) {
    worker.may_run_on = NumbersIn(processors.get());
  }
  if (hwloc_get_last_cpu_location(topology, processors.get(), HWLOC_CPUBIND_THREAD) == 0) {
    const int first = hwloc_bitmap_first(processors.get());
    if (first >= 0) worker.runs_on = first;
  }
  return worker;
}

}  // namespace

struct NumaPlace::Impl {
  HwlocTopology topology;
  int node = 0;
};

NumaPlace NumaPlace::OfThisThread(std::optional<int> device_node) {
  HwlocTopology topology = LoadTopology("");
  if (topology == nullptr) return NumaPlace();
  const std::optional<int> node =
      NodeOf(MachineOf(topology.get()), WorkerOfThisThread(topology.get(), device_node));
  if (!node.has_value()) return NumaPlace();
  return NumaPlace(std::unique_ptr<Impl>(new Impl{std::move(topology), *node}));
}

NumaPlace NumaPlace::OnSynthetic(const std::string& machine, const NumaWorker& worker) {
  HwlocTopology topology = LoadTopology(machine);
  if (topology == nullptr) return NumaPlace();
  const std::optional<int> node = NodeOf(MachineOf(topology.get()), worker);
  if (!node.has_value()) return NumaPlace();
  return NumaPlace(std::unique_ptr<Impl>(new Impl{std::move(topology), *node}));
}

bool NumaPlace::Place(absl::Span<std::byte> memory) const {
  if (impl_ == nullptr || memory.empty()) return false;
  const HwlocBitmap nodes = EmptyBitmap();
  hwloc_bitmap_set(nodes.get(), static_cast<unsigned>(impl_->node));
  // Not strict: a node that is full lets other nodes take the rest.
  const int done = hwloc_set_area_membind(impl_->topology.get(), memory.data(), memory.size(),
                                          nodes.get(), HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
  return done == 0 && hwloc_topology_is_thissystem(impl_->topology.get()) != 0;
}

std::optional<int> NumaPlace::NodeOfPage(const std::byte* memory) const {
  if (impl_ == nullptr) return std::nullopt;
  const HwlocBitmap nodes = EmptyBitmap();
  const int done = hwloc_get_area_memlocation(impl_->topology.get(), memory, 1, nodes.get(),
                                              HWLOC_MEMBIND_BYNODESET);
  const int first = done == 0 ? hwloc_bitmap_first(nodes.get()) : -1;
  return first < 0 ? std::nullopt : std::optional<int>(first);
}

std::optional<int> NumaPlace::node() const {
  return impl_ == nullptr ? std::nullopt : std::optional<int>(impl_->node);
}

NumaMachine ReadNumaMachine(const std::string& synthetic) {
  const HwlocTopology topology = LoadTopology(synthetic);
  return topology == nullptr ? NumaMachine() : MachineOf(topology.get());
}

#else

struct NumaPlace::Impl {};

NumaPlace NumaPlace::OfThisThread(std::optional<int>) { return {}; }
NumaPlace NumaPlace::OnSynthetic(const std::string&, const NumaWorker&) { return {}; }
bool NumaPlace::Place(absl::Span<std::byte>) const { return false; }
std::optional<int> NumaPlace::NodeOfPage(const std::byte*) const { return std::nullopt; }
std::optional<int> NumaPlace::node() const { return std::nullopt; }
NumaMachine ReadNumaMachine(const std::string&) { return {}; }

#endif

NumaPlace::NumaPlace() = default;
NumaPlace::NumaPlace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NumaPlace::NumaPlace(NumaPlace&& other) noexcept = default;
NumaPlace& NumaPlace::operator=(NumaPlace&& other) noexcept = default;
NumaPlace::~NumaPlace() = default;

}  // namespace siphon
