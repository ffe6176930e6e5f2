#ifndef SIPHON_PLANNER_BOUNDS_MEMORY_WINDOWS_H_
#define SIPHON_PLANNER_BOUNDS_MEMORY_WINDOWS_H_

#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// Equal layers of one stage, or equal parts of them (CheapestDrops): what each of them saves of one
// microbatch, and takes to save it again.
struct LayerKind {
  StageId stage;
  Bytes stash;
  Nanos recompute;
  bool is_whole = true;  // goes as a whole or not at all; false: a part of what a layer saves
  int layers = 1;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// A moment at which a worker is full: the first backward (B or I) behind a forward begins, so that
// whatever its forwards have saved and its backwards have not used yet is live.
struct MemoryWindow {
  int place = 0;          // of that backward in the worker's program
  StageId stage;          // of that backward
  bool split = false;     // it is an I
  int last_backward = 0;  // place of the last backward that uses what is live
  // [stage of the worker]: microbatches that wait for their B or I.
  std::vector<int> waiting;
  Bytes stash;   // of those, together
  Bytes queued;  // of microbatches between I and W: cannot be away (planner/memory_plan.h)
  // How much of all that the worker would hold, if nothing were away, is beyond its capacity;
  // negative where there is room.
  Bytes excess;
  // Of what is live, that which the window's own backward needs: all that its microbatch saved; and
  // of that the last layer's, whose backward is the first. When it begins that is there or computed
  // again, or has its room and is on its way in; the others may be away (planner/memory_plan.h).
  Bytes own_stash;
  Bytes own_last_layer;
  // Excess again, just before that backward ends: of its microbatch only what its W needs is then
  // counted, and none of that, nor of `queued`, can be away.
  Bytes excess_at_end;
  friend bool operator==(const MemoryWindow&, const MemoryWindow&) = default;
};

// What one worker holds, and when. Workers of replicas are all alike.
struct WorkerMemory {
  std::vector<StageId> stages;
  std::vector<LayerKind> layers;  // those that save something
  std::vector<Bytes> kept;        // [stage of the worker], of a microbatch, between I and W
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer_state;
  // Of a worker of one stage: places at which cells begin that use its parameters, and its
  // gradients, before any STEP. Empty for others.
  std::vector<int> parameter_uses;
  std::vector<int> gradient_uses;
  // Capacity less what is held in any case and the three above; negative when they alone are too
  // much. kUnlimitedBytes without a capacity.
  Bytes spare;
  // The most that is beyond capacity, at the end of any I, of what cannot be away: what
  // microbatches between I and W need, and the backward's workspace. So much of the three above has
  // to be away. Not positive where there is room.
  Bytes fixed_excess;
  // Moments of which no two share a live microbatch, in the order of the program: what is away at
  // one of them is not what is away at another. Among all such choices one with the largest sum of
  // squares of what is live, so whatever the capacity: a bound made from them then falls, or stays,
  // when the capacity grows. None when no moment of the worker has excess.
  std::vector<MemoryWindow> windows;
};

// Which of the worker's stages it is. Requires: it is one of them.
int PlaceOf(const WorkerMemory& memory, StageId stage);

// [worker of one replica]. O(moments^2) of a worker at worst.
std::vector<WorkerMemory> MemoryOfWorkers(const PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_MEMORY_WINDOWS_H_
