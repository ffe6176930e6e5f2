#ifndef SIPHON_PLANNER_MEMORY_WORKER_WALK_H_
#define SIPHON_PLANNER_MEMORY_WORKER_WALK_H_

#include <vector>

#include "planner/memory/memory_estimate.h"
#include "planner/memory/stage_passes.h"
#include "planner/schedule.h"

namespace siphon {

// What a stage holds from one step to the next.
struct StageState {
  MemoryByKind resident;
  // Gradients of parameters that other stages use too: room for theirs while all are added up, and
  // the sum until the optimizer's step.
  Bytes shared_gradients;
  Bytes shared_sum;
};

// Goes through one worker's program and finds the moment when it holds most.
class WorkerWalk {
 public:
  WorkerWalk(const Schedule& schedule, WorkerId worker, const std::vector<StagePasses>& passes,
             const std::vector<StageState>& states, SentTensors sent_tensors);

  // Of all stages of the schedule; those on other workers are empty.
  const std::vector<MemoryByKind>& fullest() const { return fullest_; }
  const std::vector<int>& most_live() const { return most_live_; }

 private:
  void Walk(const Action& action);
  void Forward(int stage);
  void Backward(int stage);
  void BackwardInput(int stage);
  void BackwardWeight(int stage);
  void Send(int stage, Bytes bytes);
  // Passes of a stage end with these: what was sent before is gone by now.
  void EndCompute();
  // A boundary within the worker is copied over, and the giver's released.
  void TakeFromNeighbour(int stage, int neighbour, Bytes taken, Bytes given);
  bool IsHere(int stage) const;
  void Add(int stage, MemoryKind kind, Bytes bytes);
  // The pass of `stage` is at its fullest, apart from `replaced` bytes of activations and boundary.
  void Peak(int stage, const PassMoment& moment, Bytes stash, Bytes boundary);
  void Note();

  const Schedule& schedule_;
  const WorkerId worker_;
  const std::vector<StagePasses>& passes_;
  const std::vector<StageState>& states_;
  const SentTensors sent_tensors_;
  std::vector<MemoryByKind> now_;
  Bytes total_;
  Bytes most_;
  std::vector<MemoryByKind> fullest_;
  std::vector<int> live_;
  std::vector<int> most_live_;
  struct Sent {
    int stage;
    Bytes bytes;
  };
  std::vector<Sent> sent_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_WORKER_WALK_H_
