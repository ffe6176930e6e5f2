#include "pipeline/synthetic/shrink_problem.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Shrinks quantities in place. 0 stays 0, whatever it means; nothing else becomes 0.
class Shrinker {
 public:
  explicit Shrinker(const MiniatureScale& scale) : scale_(scale) {}

  void Tensor(Bytes& bytes) const {
    bytes = Bytes((bytes.value + scale_.bytes - 1) / scale_.bytes);
  }
  void Memory(Bytes& bytes) const {
    if (bytes > Bytes(0)) bytes = Bytes(std::max<int64_t>(1, bytes.value / scale_.bytes));
  }
  void Time(Nanos& time) const { time = Nanos(Ratio(time.value, scale_.time, scale_.time_parts)); }
  void Rate(BytesPerSecond& rate) const {
    const absl::int128 slower = absl::int128(scale_.bytes) * scale_.time;
    rate = BytesPerSecond(Ratio(rate.value, scale_.time_parts, slower));
  }

 private:
  static int64_t Ratio(int64_t value, int64_t times, absl::int128 parts) {
    if (value == 0) return 0;
    return std::max<int64_t>(1, static_cast<int64_t>(absl::int128(value) * times / parts));
  }

  const MiniatureScale& scale_;
};

void ShrinkLayer(const Shrinker& shrink, LayerProfile& layer) {
  for (Nanos* time : {&layer.forward, &layer.input_backward, &layer.weight_backward,
                      &layer.whole_backward, &layer.recompute, &layer.optimizer}) {
    shrink.Time(*time);
  }
  for (Bytes* bytes : {&layer.parameters, &layer.gradients, &layer.optimizer_state, &layer.boundary,
                       &layer.forward_workspace, &layer.backward_workspace,
                       &layer.input_backward_workspace, &layer.weight_backward_workspace,
                       &layer.saved_input, &layer.saved_output, &layer.kept_for_weights}) {
    shrink.Tensor(*bytes);
  }
  for (SavedTensor& saved : layer.saved) shrink.Tensor(saved.bytes);
}

void ShrinkTopology(const Shrinker& shrink, Topology& topology) {
  for (TopologyDevice& device : topology.devices) {
    shrink.Memory(device.memory);
    shrink.Rate(device.egress);
    shrink.Rate(device.ingress);
  }
  for (TopologyLink& link : topology.links) {
    shrink.Rate(link.rate);
    shrink.Time(link.latency);
  }
  for (PcieSwitch& uplink : topology.switches) {
    for (BytesPerSecond* rate :
         {&uplink.to_host, &uplink.from_host, &uplink.to_host_both, &uplink.from_host_both}) {
      shrink.Rate(*rate);
    }
    shrink.Time(uplink.latency);
  }
  shrink.Rate(topology.nominal_wire_rate);
  shrink.Memory(topology.host_memory);
  for (NvmeDrive& drive : topology.drives) {
    shrink.Memory(drive.capacity);
    shrink.Rate(drive.read);
    shrink.Rate(drive.write);
    shrink.Time(drive.latency);
  }
}

}  // namespace

PlanningProblem ShrinkProblem(PlanningProblem problem, const MiniatureScale& scale) {
  SIPHON_CHECK(scale.bytes > 0 && scale.time > 0 && scale.time_parts > 0,
               "a miniature's scale has positive numbers");
  const Shrinker shrink(scale);
  for (LayerProfile& layer : problem.profile.layers) ShrinkLayer(shrink, layer);
  ShrinkTopology(shrink, problem.topology);
  shrink.Time(problem.transport.latency);
  shrink.Rate(problem.transport.rate);
  shrink.Rate(problem.transport.host_rate);
  shrink.Rate(problem.transport.copy_rate);
  problem.cores.clear();
  for (Bytes& capacity : problem.capacity) shrink.Memory(capacity);
  for (MemoryByKind& held : problem.held) {
    for (Bytes& bytes : held.bytes) shrink.Tensor(bytes);
  }
  shrink.Time(problem.host_step);
  return problem;
}

}  // namespace siphon
