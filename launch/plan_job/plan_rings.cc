#include "launch/plan_job/plan_rings.h"

#include <algorithm>
#include <map>

#include "pipeline/transport/all_gather.h"

namespace siphon {
namespace {

constexpr int64_t kMessagesPerRing = 2;
constexpr Bytes kLargestRing{64 << 20};
// Norms, step statistics and short texts; larger ones pass in pieces.
constexpr Bytes kControlRing{64 << 10};
// Gradients of tied embeddings, once a step: pieces of this size keep both sides busy.
constexpr Bytes kSharedGradientRing{1 << 20};

Bytes BoundaryBytes(const TrainingPlan& plan, const ModelSpec& model, StageId before) {
  const StageRange& range = plan.partition.stages[before.value];
  Bytes bytes;
  for (const TensorSpec& output : model.layers[range.end - 1].outputs) {
    bytes += SizeOf(Batched(output, plan.microbatch));
  }
  return bytes;
}

class RingTable {
 public:
  void Need(const Channel& channel, Bytes capacity) {
    Bytes& current = rings_[channel];
    current = std::max(current, capacity);
  }
  std::vector<RingSpec> Specs() const {
    std::vector<RingSpec> specs;
    for (const auto& [channel, capacity] : rings_) specs.push_back({channel, capacity});
    return specs;
  }

 private:
  std::map<Channel, Bytes> rings_;
};

}  // namespace

std::vector<RingSpec> PlanRings(const TrainingPlan& plan, const ModelSpec& model) {
  const std::vector<WorkerId>& worker = plan.training.worker_of_stage;
  RingTable table;
  for (int stage = 0; stage + 1 < static_cast<int>(worker.size()); ++stage) {
    if (worker[stage] == worker[stage + 1]) continue;
    const Bytes message = BoundaryBytes(plan, model, StageId(stage));
    const Bytes capacity = std::min(kLargestRing, message * kMessagesPerRing + kControlRing);
    table.Need({worker[stage], worker[stage + 1], Lane::kForward}, capacity);
    table.Need({worker[stage + 1], worker[stage], Lane::kBackward}, capacity);
  }
  for (const Channel& channel :
       AllGatherChannels(static_cast<int>(plan.training.programs.size()))) {
    table.Need(channel, kControlRing);
  }
  for (const SharedParameter& parameter : plan.shared_parameters) {
    for (const StageId a : parameter.stages) {
      for (const StageId b : parameter.stages) {
        const Channel channel{worker[a.value], worker[b.value], Lane::kControl};
        if (channel.from != channel.to) table.Need(channel, kSharedGradientRing);
      }
    }
  }
  return table.Specs();
}

Bytes IncomingRingBytes(const std::vector<RingSpec>& rings, WorkerId worker) {
  Bytes bytes;
  for (const RingSpec& ring : rings) {
    if (ring.channel.to == worker) bytes += ring.capacity;
  }
  return bytes;
}

}  // namespace siphon
