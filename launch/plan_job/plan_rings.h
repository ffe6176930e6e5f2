#ifndef SIPHON_LAUNCH_PLAN_JOB_PLAN_RINGS_H_
#define SIPHON_LAUNCH_PLAN_JOB_PLAN_RINGS_H_

#include <vector>

#include "launch/config/job_config.h"
#include "pipeline/transport/nccl_options.h"
#include "pipeline/transport/ring_transport.h"
#include "planner/model_spec.h"
#include "planner/training_plan.h"

namespace siphon {

// What messages between workers of one host go over: rings of shared memory, MPI's messages, or
// NCCL between memories of devices.
enum class TransportKind { kRings, kMpi, kNccl };
TransportKind TransportKindOf(const PipelineConfig& pipeline);

// Messages of a boundary that are under way before the first of them is received.
inline constexpr int kMessagesPerRing = 2;

// A ring for each channel that the plan's programs use. A boundary's ring holds kMessagesPerRing of
// them, so that a worker that is done with a microbatch goes on to the next while its neighbour
// still computes; larger ones than 64 MiB pass in pieces.
std::vector<RingSpec> PlanRings(const TrainingPlan& plan, const ModelSpec& model);

// Whether each boundary's ring has that room, so that a worker keeps nothing of what it sent; of a
// message that passes in pieces it keeps all until the receiver has the last.
bool RingsHoldBoundaries(const TrainingPlan& plan, const ModelSpec& model);

// What a worker's transport over NCCL is made with, as far as the plan knows it: a channel for each
// boundary and direction, and for the gradients of parameters that stages share.
NcclTransportOptions PlanNccl(const TrainingPlan& plan, WorkerId me);

// Rings of the host beside NCCL, which hold no tensors: for control, and for what workers tell each
// other about messages.
std::vector<RingSpec> PlanHostRings(const TrainingPlan& plan);

// Those of PlanRings or, beside NCCL, of PlanHostRings; none beside MPI messages.
std::vector<RingSpec> RingsBeside(TransportKind kind, const TrainingPlan& plan,
                                  const ModelSpec& model);

// Bytes of each worker's memory that messages take from the begin to the end.
std::vector<Bytes> MessageMemory(TransportKind kind, const TrainingPlan& plan,
                                 const ModelSpec& model);

// Bytes of the rings whose receiver is `worker`: they count as that worker's memory.
Bytes IncomingRingBytes(const std::vector<RingSpec>& rings, WorkerId worker);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_PLAN_RINGS_H_
