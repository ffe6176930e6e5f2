#include "planner/memory/worker_walk.h"

#include <algorithm>

namespace siphon {

WorkerWalk::WorkerWalk(const Schedule& schedule, WorkerId worker,
                       const std::vector<StagePasses>& passes,
                       const std::vector<StageState>& states, SentTensors sent_tensors)
    : schedule_(schedule),
      worker_(worker),
      passes_(passes),
      states_(states),
      sent_tensors_(sent_tensors),
      now_(passes.size()),
      live_(passes.size()),
      most_live_(passes.size()) {
  for (const StageId stage : StagesOf(schedule, worker)) {
    now_[stage.value] = states[stage.value].resident;
    total_ += Total(now_[stage.value]);
  }
  Note();
  for (const Action& action : schedule.programs[worker.value]) Walk(action);
}

void WorkerWalk::Walk(const Action& action) {
  const int stage = action.stage.value;
  const StagePasses& passes = passes_[stage];
  switch (action.kind) {
    case ActionKind::kForward:
      return Forward(stage);
    case ActionKind::kBackward:
      return Backward(stage);
    case ActionKind::kBackwardInput:
      return BackwardInput(stage);
    case ActionKind::kBackwardWeight:
      return BackwardWeight(stage);
    case ActionKind::kReceiveForward:
      return Add(stage, MemoryKind::kBoundary, passes.input);
    case ActionKind::kReceiveBackward:
      return Add(stage, MemoryKind::kBoundary, passes.output);
    case ActionKind::kSendForward:
      return Send(stage, passes.output_alone);
    case ActionKind::kSendBackward:
      return Send(stage, passes.input);
    case ActionKind::kReduceGradient:
      Add(stage, MemoryKind::kGradients,
          states_[stage].shared_gradients + states_[stage].shared_sum);
      return Add(stage, MemoryKind::kGradients, Bytes() - states_[stage].shared_gradients);
    case ActionKind::kStep:
      return Add(stage, MemoryKind::kGradients, Bytes() - states_[stage].shared_sum);
    case ActionKind::kSwapOutEnd:
    case ActionKind::kDrop:
      return Add(stage, MemoryKind::kActivations, Bytes() - passes.stash);
    case ActionKind::kSwapIn:
      return Add(stage, MemoryKind::kActivations, passes.stash);
    case ActionKind::kRecompute:
      Peak(stage, passes.forward, Bytes(), Bytes());
      return Add(stage, MemoryKind::kActivations, passes.stash);
    case ActionKind::kReduceNorm:
    case ActionKind::kUpdate:
    case ActionKind::kSwapOut:
    case ActionKind::kSwapInEnd:
      return;
  }
}

void WorkerWalk::Forward(int stage) {
  const StagePasses& passes = passes_[stage];
  if (IsHere(stage - 1)) {
    TakeFromNeighbour(stage, stage - 1, passes.input, passes_[stage - 1].output_alone);
  }
  Peak(stage, passes.forward, Bytes(), passes.input);
  Add(stage, MemoryKind::kBoundary, passes.output_alone - passes.input);
  Add(stage, MemoryKind::kActivations, passes.stash);
  most_live_[stage] = std::max(most_live_[stage], ++live_[stage]);
  EndCompute();
}

void WorkerWalk::Backward(int stage) {
  const StagePasses& passes = passes_[stage];
  if (IsHere(stage + 1)) TakeFromNeighbour(stage, stage + 1, passes.output, passes.output);
  Peak(stage, passes.backward, passes.stash, passes.output);
  Add(stage, MemoryKind::kActivations, Bytes() - passes.stash);
  Add(stage, MemoryKind::kBoundary, passes.input - passes.output);
  --live_[stage];
  EndCompute();
}

void WorkerWalk::BackwardInput(int stage) {
  const StagePasses& passes = passes_[stage];
  if (IsHere(stage + 1)) TakeFromNeighbour(stage, stage + 1, passes.output, passes.output);
  Peak(stage, passes.input_backward, passes.stash, passes.output);
  Add(stage, MemoryKind::kActivations, passes.kept - passes.stash);
  Add(stage, MemoryKind::kBoundary, passes.input - passes.output);
  EndCompute();
}

void WorkerWalk::BackwardWeight(int stage) {
  const StagePasses& passes = passes_[stage];
  Peak(stage, passes.weight_backward, passes.kept, Bytes());
  Add(stage, MemoryKind::kActivations, Bytes() - passes.kept);
  --live_[stage];
  EndCompute();
}

void WorkerWalk::Send(int stage, Bytes bytes) {
  if (sent_tensors_ == SentTensors::kUntilReceived) return sent_.push_back({stage, bytes});
  Add(stage, MemoryKind::kBoundary, Bytes() - bytes);
}

void WorkerWalk::EndCompute() {
  for (const Sent& sent : sent_) Add(sent.stage, MemoryKind::kBoundary, Bytes() - sent.bytes);
  sent_.clear();
}

void WorkerWalk::TakeFromNeighbour(int stage, int neighbour, Bytes taken, Bytes given) {
  Add(stage, MemoryKind::kBoundary, taken);
  Add(neighbour, MemoryKind::kBoundary, Bytes() - given);
}

bool WorkerWalk::IsHere(int stage) const {
  return stage >= 0 && stage < StageCount(schedule_) && schedule_.worker_of_stage[stage] == worker_;
}

void WorkerWalk::Add(int stage, MemoryKind kind, Bytes bytes) {
  now_[stage][kind] += bytes;
  total_ += bytes;
  Note();
}

void WorkerWalk::Peak(int stage, const PassMoment& moment, Bytes stash, Bytes boundary) {
  const MemoryByKind before = now_[stage];
  const Bytes total = total_;
  now_[stage][MemoryKind::kActivations] += moment.activations - stash;
  now_[stage][MemoryKind::kBoundary] += moment.boundary - boundary;
  now_[stage][MemoryKind::kWorkspace] += moment.workspace;
  total_ += moment.total() - stash - boundary;
  Note();
  now_[stage] = before;
  total_ = total;
}

void WorkerWalk::Note() {
  if (!fullest_.empty() && total_ <= most_) return;
  most_ = total_;
  fullest_ = now_;
}

}  // namespace siphon
