#ifndef SIPHON_PLANNER_SIMULATOR_STEP_GRAPH_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory/memory_kind.h"
#include "planner/schedule_index.h"
#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/simulator/simulate.h"

namespace siphon {

enum class TaskRole : uint8_t {
  kCompute,   // on a worker's lane: an action, or the part of it that one layer takes
  kMarker,    // on a worker's lane: takes no time, but may wait (SWAP_OUT_END, REDUCE_NORM, ...)
  kMessage,   // between two workers
  kSwap,      // to or from the host, a lender or a drive
  kExchange,  // gradients and norms before the optimizer step
  kHostStep,  // an optimizer step on the host
};

// Where a task comes from. Workers of replicas are counted on: replica * workers + worker.
struct TaskOrigin {
  TaskRole role = TaskRole::kMarker;
  int worker = -1;  // whose program
  int place = -1;   // in the program; -1: no action
  // What a task on a worker's lane waits for on another one, and what a message carries the product
  // of; -1: nothing.
  int provider = -1;
  // Not kWholeStage: it computes this group again, for the action that needs it.
  GroupId recomputes = kWholeStage;
};

// `bytes` more, or less, at the begin or end of a task.
struct MemoryChange {
  int task = 0;
  TaskMoment moment = TaskMoment::kBegin;
  MemoryKind kind = MemoryKind::kActivations;
  int account = 0;  // of StepAccounts
  int worker = 0;   // whose action asks, and where it stands
  int place = 0;
  Bytes bytes;
};

// A step as tasks, what they do to memory, and where they come from.
struct StepGraph {
  TaskGraph graph;
  std::vector<TaskOrigin> origins;  // [task]
  std::vector<MemoryChange> changes;
  std::vector<std::string> lane_names;  // [lane]; empty for the compute lanes, which come first
  int workers = 0;                      // of all replicas
  // As new, but with the memory that it has.
  void Clear();
};

// Requires: `input` went through CheckSimulationInput, `index` is that of its schedule, which
// passes CheckResidency. Errors: InvalidArgument for a missing path; FailedPrecondition, with the
// grid, when an action lacks one that it needs.
// What is in `space` is lost; its memory is used again.
absl::StatusOr<StepGraph> BuildStepGraph(const SimulationInput& input, const ScheduleIndex& index,
                                         StepGraph space = {});

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_GRAPH_H_
