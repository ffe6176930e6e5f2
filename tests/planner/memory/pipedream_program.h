#ifndef SIPHON_TESTS_PLANNER_MEMORY_PIPEDREAM_PROGRAM_H_
#define SIPHON_TESTS_PLANNER_MEMORY_PIPEDREAM_PROGRAM_H_

#include <algorithm>

#include "planner/schedule.h"

namespace siphon {

// PipeDream's one-forward-one-backward (Narayanan et al. 2019, section 3.2), an update after each
// backward: stage s keeps workers - s minibatches in flight, each with the weights it began with.
inline Schedule PipedreamProgram(int workers, int minibatches) {
  Schedule schedule;
  schedule.microbatches = minibatches;
  for (int stage = 0; stage < workers; ++stage) {
    schedule.worker_of_stage.emplace_back(stage);
    std::vector<Action>& program = schedule.programs.emplace_back();
    const int in_flight = std::min(workers - stage, minibatches);
    for (int turn = 0; turn < minibatches + in_flight; ++turn) {
      if (turn >= in_flight) {
        const MicrobatchId done(turn - in_flight);
        program.push_back({StageId(stage), ActionKind::kBackward, done});
        program.push_back({StageId(stage), ActionKind::kUpdate, done});
      }
      if (turn < minibatches) {
        program.push_back({StageId(stage), ActionKind::kForward, MicrobatchId(turn)});
      }
    }
  }
  return schedule;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_MEMORY_PIPEDREAM_PROGRAM_H_
