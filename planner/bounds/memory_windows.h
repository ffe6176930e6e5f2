#ifndef SIPHON_PLANNER_BOUNDS_MEMORY_WINDOWS_H_
#define SIPHON_PLANNER_BOUNDS_MEMORY_WINDOWS_H_

#include <vector>

#include "planner/strategies/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// Equal layers of one stage: what each of them saves of one microbatch, and takes to save it again.
struct LayerKind {
  StageId stage;
  Bytes stash;
  Nanos recompute;
  int layers = 1;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// A moment at which a worker is full: the first backward (B or I) behind a forward begins, so that
// whatever its forwards have saved and its backwards have not used yet is live.
struct MemoryWindow {
  int place = 0;          // of that backward in the worker's program
  StageId stage;          // of that backward
  int last_backward = 0;  // place of the last backward that uses what is live
  // [stage of the worker]: microbatches that wait for their B or I.
  std::vector<int> waiting;
  Bytes stash;   // of those, together
  Bytes queued;  // of microbatches between I and W: these may be swapped, not recomputed
  // How much of all that the worker would hold, if nothing were away, is beyond its capacity;
  // negative where there is room.
  Bytes excess;
  // Of what is live, that which the window's own backward needs, which is there or on its way in,
  // its room taken, when it begins: all that its microbatch saved, but for layers computed again;
  // and of these the last one, whose backward is the first.
  Bytes own_stash;
  Bytes own_last_layer;
  friend bool operator==(const MemoryWindow&, const MemoryWindow&) = default;
};

// What one worker holds, and when. Workers of replicas are all alike.
struct WorkerMemory {
  std::vector<StageId> stages;
  std::vector<LayerKind> layers;  // those that save something
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer_state;
  // Capacity less what is held in any case and the three above; negative when they alone are too
  // much. kUnlimitedBytes without a capacity.
  Bytes spare;
  // Moments of which no two share a live microbatch, in the order of the program: what is away at
  // one of them is not what is away at another. Among all such choices one with the largest sum of
  // squares of what is live, so whatever the capacity: a bound made from them then falls, or stays,
  // when the capacity grows. None when no moment of the worker has excess.
  std::vector<MemoryWindow> windows;
};

// [worker of one replica]. O(moments^2) of a worker at worst.
std::vector<WorkerMemory> MemoryOfWorkers(const PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_MEMORY_WINDOWS_H_
