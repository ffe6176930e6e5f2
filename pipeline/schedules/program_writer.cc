#include "pipeline/schedules/program_writer.h"

#include <algorithm>

namespace siphon {

ProgramWriter::ProgramWriter(Schedule& schedule, int worker)
    : program_(schedule.programs[worker]),
      microbatches_(schedule.microbatches),
      forwards_(schedule.worker_of_stage.size(), 0),
      backwards_(schedule.worker_of_stage.size(), 0) {}

void ProgramWriter::Write(const Action& action) {
  if (action.microbatch.value < microbatches_) program_.push_back(action);
}

Action ProgramWriter::NextBackward(int stage, ActionKind kind) {
  return {StageId(stage), kind, MicrobatchId(backwards_[stage]++)};
}

void ProgramWriter::Forward(int stage) {
  Write({StageId(stage), ActionKind::kForward, MicrobatchId(forwards_[stage]++)});
}

void ProgramWriter::Backward(int stage) { Write(NextBackward(stage, ActionKind::kBackward)); }

void ProgramWriter::BackwardInput(int stage) {
  const Action input = NextBackward(stage, ActionKind::kBackwardInput);
  Write(input);
  waiting_.push_back({input.stage, ActionKind::kBackwardWeight, input.microbatch});
}

void ProgramWriter::BackwardWeight(int stage) {
  const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), [stage](const Action& weight) {
    return weight.stage.value == stage;
  });
  if (oldest == waiting_.end()) return;
  Write(*oldest);
  waiting_.erase(oldest);
}

void ProgramWriter::OldestBackwardWeight() {
  if (waiting_.empty()) return;
  Write(waiting_.front());
  waiting_.pop_front();
}

void ProgramWriter::AllBackwardWeights() {
  while (!waiting_.empty()) OldestBackwardWeight();
}

void ProgramWriter::ForwardWithBackward(int forward_stage, int backward_stage) {
  Write({StageId(forward_stage), ActionKind::kForward, MicrobatchId(forwards_[forward_stage]++),
         Pairing::kWithNext});
  Backward(backward_stage);
}

void ProgramWriter::Step(int stage) { Write({StageId(stage), ActionKind::kStep, {}}); }

void ProgramWriter::Update(int stage) {
  Write({StageId(stage), ActionKind::kUpdate, MicrobatchId(backwards_[stage] - 1)});
}

}  // namespace siphon
