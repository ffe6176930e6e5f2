#ifndef SIPHON_PLANNER_SIMULATOR_STEP_RUNS_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_RUNS_H_

#include <array>
#include <cstddef>

#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/graph/step_graph.h"

namespace siphon {

// Runs the graphs of one step after another, of which each is like one before it: a search changes
// what it has found so far, here and there. So a run goes on from where it first differs from one
// of the latest two, the one that it is more like.
//
// Invariant: what it answers is what RunTaskGraph would.
class StepRuns {
 public:
  // Both are valid until the next TakeSpace.
  struct Answer {
    const StepGraph& step;
    const TaskRun& run;
  };

  // An old graph, whose memory the next one may use.
  StepGraph TakeSpace();
  Answer Run(StepGraph graph);

  // Events of all runs, and those of them that were taken from an earlier one.
  size_t events() const { return events_; }
  size_t events_taken() const { return events_taken_; }

 private:
  struct Record {
    StepGraph step;
    TaskRunSpace space;
    bool is_complete = false;  // can be gone on from
  };

  // Two that are known, and one for the next.
  std::array<Record, 3> records_;
  size_t newest_ = 0;
  size_t base_ = 1;  // what the newest was like, or an older one
  size_t free_ = 2;
  size_t events_ = 0;
  size_t events_taken_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_RUNS_H_
