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
// Of records about messages over NCCL, more than are under way at once.
constexpr int64_t kRecordsPerRing = 32;

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
      for (const WorkerId to : workers) {
        if (from != to) channels.insert({from, to, Lane::kControl});
      }
    }
  }
  return channels;
}

}  // namespace

TransportKind TransportKindOf(const PipelineConfig& pipeline) {
  if (pipeline.transport == "mpi") return TransportKind::kMpi;
  const bool on_devices = pipeline.transport == "auto" && pipeline.backend == "cuda";
  return on_devices || pipeline.transport == "nccl" ? TransportKind::kNccl : TransportKind::kRings;
}

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

NcclTransportOptions PlanNccl(const TrainingPlan& plan, WorkerId me) {
  const WorkerLayout layout = LayoutOf(plan);
  const std::set<Channel> shared = SharedGradientChannels(layout);
  NcclTransportOptions options{.me = me, .workers = WorkerCount(layout)};
  for (const Channel& channel : ChannelsOf(layout)) {
    if (channel.lane != Lane::kControl || shared.contains(channel)) {
      options.channels.push_back(channel);
    }
  }
  return options;
}

std::vector<RingSpec> PlanHostRings(const TrainingPlan& plan) {
  std::vector<RingSpec> rings;
  for (const Channel& channel : ChannelsOf(LayoutOf(plan))) {
    if (channel.lane == Lane::kControl) rings.push_back({channel, kControlRing});
  }
  for (const Channel& channel : NcclRecordChannels(PlanNccl(plan, WorkerId(0)).channels)) {
    rings.push_back({channel, kNcclRecordBytes * kRecordsPerRing});
  }
  return rings;
}

std::vector<RingSpec> RingsBeside(TransportKind kind, const TrainingPlan& plan,
                                  const ModelSpec& model) {
  switch (kind) {
    case TransportKind::kRings:
      return PlanRings(plan, model);
    case TransportKind::kNccl:
      return PlanHostRings(plan);
    case TransportKind::kMpi:
      break;
  }
  return {};
}

std::vector<Bytes> MessageMemory(TransportKind kind, const TrainingPlan& plan,
                                 const ModelSpec& model) {
  if (kind == TransportKind::kMpi) return {};
  const std::vector<RingSpec> rings =
      kind == TransportKind::kRings ? PlanRings(plan, model) : std::vector<RingSpec>();
  const NcclTransportOptions nccl = PlanNccl(plan, WorkerId(0));
  std::vector<Bytes> bytes;
  for (WorkerId worker(0); worker.value < WorkerCount(plan.training); ++worker.value) {
    bytes.push_back(kind == TransportKind::kRings
                        ? IncomingRingBytes(rings, worker)
                        : NcclMemoryOf(worker, nccl.channels, nccl.max_ctas));
  }
  return bytes;
}

Bytes IncomingRingBytes(const std::vector<RingSpec>& rings, WorkerId worker) {
  Bytes bytes;
  for (const RingSpec& ring : rings) {
    if (ring.channel.to == worker) bytes += ring.capacity;
  }
  return bytes;
}

}  // namespace siphon
