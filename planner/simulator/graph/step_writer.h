#ifndef SIPHON_PLANNER_SIMULATOR_STEP_WRITER_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_WRITER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/simulator/graph/step_graph.h"
#include "planner/simulator/graph/step_resources.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// What a core takes to copy so much alone; nothing at rate 0.
Nanos TimeOfCore(Bytes bytes, BytesPerSecond rate);

// Writes a StepGraph down, program by program, action by action. Knows which action is being
// written, and which task of the worker's lane is the newest.
class StepWriter {
 public:
  static constexpr int kNone = -1;

  // `input` must outlive this. `graph` is empty, with or without memory.
  explicit StepWriter(const SimulationInput& input, StepGraph graph = {});
  StepWriter(const StepWriter&) = delete;
  StepWriter& operator=(const StepWriter&) = delete;

  void BeginProgram(int replica, int worker);
  void BeginAction(int place) { place_ = place; }
  // What is added from here on belongs to no program.
  void EndPrograms();
  int place() const { return place_; }
  StepGraph Take();

  const SimulationInput& input() const { return input_; }
  const StageCost& CostOf(StageId stage) const { return input_.stages[stage.value]; }
  StepResources& resources() { return resources_; }
  int workers() const { return graph_.workers; }  // of all replicas
  int replica() const { return replica_; }
  int worker() const { return worker_; }  // of its replica
  int Account(int worker) const;          // of a worker of this replica
  int account() const { return account_; }
  int host() const;  // the account of this worker's host
  const Action& action() const { return input_.schedule.programs[worker_][place_]; }
  // The newest task of the worker's lane: what happens now happens when it ends.
  int last() const { return last_; }

  // All return the new task. A copy waits for last().
  int AddOnLane(TaskRole role, Nanos duration);
  int AddCopy(TaskRole role, const Route& route, Bytes bytes);
  int AddMeeting(Nanos duration);
  // An optimizer step on the host, which waits for its turn there.
  int AddHostStep(Nanos duration);
  // Work on the lane that is shown as RECOMPUTE of the group, whatever action it is a part of.
  int AddRecompute(GroupId group, Nanos duration);

  void AddDependency(int task, int before);
  // The same; `provider` is what a wait of `task` is put down to.
  void Wait(int task, int provider);

  void Change(int task, TaskMoment moment, MemoryKind kind, Bytes bytes);
  void ChangeAt(int account, int task, TaskMoment moment, MemoryKind kind, Bytes bytes);
  void Hold(int first, int last, MemoryKind kind, Bytes bytes);

  // FailedPrecondition at the action that is being written: "worker 1 has 1F0<complaint>".
  absl::Status Refuse(absl::string_view complaint) const;

 private:
  const SimulationInput& input_;
  StepGraph graph_;
  StepResources resources_;
  int replica_ = 0;
  int worker_ = 0;
  int account_ = 0;
  int place_ = kNone;
  int last_ = kNone;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_WRITER_H_
