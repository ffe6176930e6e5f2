#include "launch/plan_job/plan_rings.h"

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/worker_layout.h"

namespace siphon {
namespace {

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

WorkerLayout LayoutOf(const TrainingPlan& plan) {
  return {.worker_of_stage = plan.training.worker_of_stage,
          .shared_parameters = plan.shared_parameters,
          .owned_parameters = {}};
}

// The largest boundary message of each channel between neighbouring stages.
std::map<Channel, Bytes> BoundaryMessages(const TrainingPlan& plan, const ModelSpec& model) {
  const std::vector<WorkerId>& worker = plan.training.worker_of_stage;
  std::map<Channel, Bytes> messages;
  for (int stage = 0; stage + 1 < StageCount(plan.training); ++stage) {
    const Bytes message = BoundaryBytes(plan, model, StageId(stage));
    for (const Channel& channel : {Channel{worker[stage], worker[stage + 1], Lane::kForward},
                                   Channel{worker[stage + 1], worker[stage], Lane::kBackward}}) {
      messages[channel] = std::max(messages[channel], message);
    }
  }
  return messages;
}

Bytes RoomFor(Bytes message) { return message * kMessagesPerRing + kControlRing; }

// Channels on which gradients of shared parameters go.
std::set<Channel> SharedGradientChannels(const WorkerLayout& layout) {
  std::set<Channel> channels;
  for (const SharedParameter& parameter : layout.shared_parameters) {
    const std::set<WorkerId> workers = WorkersSharing(layout, parameter);
    for (const WorkerId from : workers) {
      for (const WorkerId to : workers) channels.insert({from, to, Lane::kControl});
    }
  }
  return channels;
}

}  // namespace

std::vector<RingSpec> PlanRings(const TrainingPlan& plan, const ModelSpec& model) {
  const WorkerLayout layout = LayoutOf(plan);
  const std::map<Channel, Bytes> messages = BoundaryMessages(plan, model);
  const std::set<Channel> shared = SharedGradientChannels(layout);
  std::vector<RingSpec> rings;
  for (const Channel& channel : ChannelsOf(layout)) {
    const auto boundary = messages.find(channel);
    if (boundary != messages.end()) {
      rings.push_back({channel, std::min(kLargestRing, RoomFor(boundary->second))});
    } else {
      rings.push_back({channel, shared.contains(channel) ? kSharedGradientRing : kControlRing});
    }
  }
  return rings;
}

bool RingsHoldBoundaries(const TrainingPlan& plan, const ModelSpec& model) {
  const std::map<Channel, Bytes> messages = BoundaryMessages(plan, model);
  return std::all_of(messages.begin(), messages.end(), [](const auto& message) {
    const auto& [channel, bytes] = message;
    return channel.from == channel.to || RoomFor(bytes) <= kLargestRing;
  });
}

Bytes IncomingRingBytes(const std::vector<RingSpec>& rings, WorkerId worker) {
  Bytes bytes;
  for (const RingSpec& ring : rings) {
    if (ring.channel.to == worker) bytes += ring.capacity;
  }
  return bytes;
}

}  // namespace siphon
