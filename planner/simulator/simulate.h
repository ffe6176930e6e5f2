#ifndef SIPHON_PLANNER_SIMULATOR_SIMULATE_H_
#define SIPHON_PLANNER_SIMULATOR_SIMULATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/layer_cost.h"
#include "planner/memory/memory_kind.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/sent_memory.h"
#include "planner/simulator/engine/shared_cores.h"
#include "planner/simulator/simulated_step.h"
#include "planner/stage_cost.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// Workers that are processes of one machine, where no topology says better.
struct TransportCosts {
  Nanos latency;             // of a message or a copy; with a topology: of control messages
  BytesPerSecond rate;       // between any two workers, per direction; 0: no limit
  BytesPerSecond host_rate;  // all workers to the host together, and back; 0: no limit
  // Of the worker's own copy of a message out of its memory with SEND, and into it before the
  // action that needs it; between two stages of one worker there is one such copy. 0: workers copy
  // nothing.
  BytesPerSecond copy_rate;
  // Of a core that copies tensors out of a worker's memory and back, where cores are shared
  // (SimulationInput::cores); 0: copies take no core.
  BytesPerSecond swap_rate;
  int room = 0;  // messages of a channel that may be sent before the first of them has its RECV
  SentMemory sent = SentMemory::kUntilSent;
  friend bool operator==(const TransportCosts&, const TransportCosts&) = default;
};

struct SimulationInput {
  Schedule schedule;              // compute-only or lowered
  std::vector<StageCost> stages;  // one a stage
  // [stage][layer], or empty: a stage is one piece. Times, stash and kept_for_weights of a stage's
  // layers add up to the StageCost.
  std::vector<std::vector<LayerCost>> layers;
  // Without devices: the workers are connected by `transport` only. Otherwise its rates and its
  // latency are unused.
  Topology topology;
  std::vector<DeviceId> device_of_worker;  // replicas one after the other; empty: worker w on w
  TransportCosts transport;
  CoreSharing cores;  // of all workers together; empty: each has a device of its own
  // Where tensor groups go. Stages with groups need `layers`; a group's layers count through all
  // stages, those of stage 0 first.
  MemoryPlan memory;
  // [stage]: what its optimizer step takes on the host, where the plan has it there; empty: no
  // time.
  std::vector<Nanos> host_step;
  std::vector<Bytes> capacity;  // [worker], all replicas alike; empty: no limit; 0: no limit
  // [worker]: held all the time beside what follows from `stages` (communication, slack, ...);
  // empty: nothing.
  std::vector<MemoryByKind> held;
  // Gradients that leave while a pass is at other layers give their memory back where the worker
  // waits for the copy, and not already when it is through: so a peak does not hang on times.
  bool frees_at_waits = false;
};

// Runs the step of `schedule` on paper.
//
// Time: each worker runs its program in order, one action at a time, compound cells in sequence. F
// takes `forward`, B `whole_backward`, I and W theirs, STEP and UPDATE `step`, RECOMPUTE
// `forward`: alone on a core; all that run at one moment share `cores`.
// SEND starts the message, RECV posts its buffer, and the F, B or I that needs the message waits
// for it; but for the worker's own copies (`copy_rate`) they take no time of the worker. Messages
// of one channel (sender, receiver, direction) go one after the other; each waits for its RECV, or
// with `room` for that of the message so many places before it. A compute-only schedule sends as
// soon as a tensor is computed. REDUCE_GRAD and REDUCE_NORM wait for all workers that have one, and
// for a message there and back. With replicas, STEP first adds up the gradients of all replicas
// through the host (or `transport`).
//
// Copies: SWAP_OUT and SWAP_IN start one to or from the host, on the device's copy engine for that
// direction; one to or from each lender of a group, on the engine for that peer; or one through the
// host to or from DriveOf the device. Where workers share `cores`, each is also work of a core, at
// `swap_rate`, and ends when both are done. Their ENDs wait for all of it, and so do actions that
// find a group on its way in (planner/memory_plan.h says where); those that find it dropped compute
// it again first, which is shown as RECOMPUTE of the group. STEP of a group takes the `optimizer`
// times of its layers, a plain STEP the rest of the stage's `step`. Where the plan has the step on
// the host, STEP starts the copy of the gradients, those of shared parameters too, and the worker
// goes on; the host steps one at a time, first come, first served, in `host_step`, of which a group
// takes a part by its bytes; then the parameters come in. The worker waits for them before it moves
// parameters of the stage, or at the end of its program.
//
// Memory: parameters, gradients, optimizer state and `held` for the whole step, groups of them that
// are away at its begin and end only from SWAP_IN until SWAP_OUT_END or DROP, and where they are
// away the whole step (of what an action has only while it is at its layers, from the start of the
// copy in until the end of the layers or of the copy out); optimizer state of steps on the host
// with the host, and there the gradients until they are used; weight versions from the UPDATE that
// makes the newer one until the last backward that comes back to the older; activations from F
// (layer by layer) until B, or until I but for `kept_for_weights`, and these until W; away from
// SWAP_OUT_END until SWAP_IN, and meanwhile, from the start of the copy out until the end of that
// back in, with the host, on a drive or with the lenders: with the worker there, or, where there is
// none, in a device's own `memory`; DROP keeps the input only, of the stage or of the group's first
// layer; a boundary tensor at its maker from its compute action until it is sent, at its user from
// RECV (compute-only: from the start of the message) until the end of its use, and once where maker
// and user are the same worker; workspace during F, RECOMPUTE and during B, I, W, that of an
// I less what its activations have grown beyond the stash (PassWorkspace). With
// SentMemory::kUntilTaken a boundary tensor is with its maker from the begin of the whole compute
// action on, as if the workspace had no room for it before, and is twice there where the user is
// the same worker, while that one's action begins.
//
// Errors: InvalidArgument when sizes of the input do not match each other or there is no path
// between two devices; FailedPrecondition, with the grid and "<-- here", for a schedule that
// deadlocks, lacks an action that another one needs, or uses activations that are away;
// ResourceExhausted, with the grid, when a worker would hold more than its capacity (says which
// action asks for how much, and what is free), or all together more than the host, a drive or a
// device without a worker has.
//
// O(actions * log(workers)) as long as few copies share a link at once. Deterministic.
absl::StatusOr<SimulatedStep> Simulate(const SimulationInput& input);

// `schedule` with the same cost for every stage, and free messages.
SimulationInput EqualStages(Schedule schedule, const StageCost& cost);

// EqualStages with F, I and W of one time unit (1 ns) each, and one byte of activations a
// (stage, microbatch): what bubbles and peaks are counted in.
SimulationInput UnitStages(Schedule schedule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_SIMULATE_H_
