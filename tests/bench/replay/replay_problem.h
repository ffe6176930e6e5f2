#ifndef SIPHON_TESTS_BENCH_REPLAY_REPLAY_PROBLEM_H_
#define SIPHON_TESTS_BENCH_REPLAY_REPLAY_PROBLEM_H_

#include <string>

#include "absl/status/statusor.h"
#include "pipeline/synthetic/shrink_problem.h"
#include "planner/strategies/planning_problem.h"

namespace siphon {

// What is replayed.
struct ReplayedModel {
  std::string name;                    // of a row of Table II, or how many blocks a GPT has
  std::string topology = "dgx1_v100";  // a preset
  Bytes memory;                        // of each device; 0: as the preset says
};
std::string ToString(const ReplayedModel& model);

// A model of MPress's Table II on a server, in small, as workers here can run it.
struct ReplayProblem {
  PlanningProblem run;  // what is run, and what the simulator predicts
  // What plans are made for: the same, but that parameters, gradients and optimizer state cannot
  // be moved (they count as held), which workers do not do.
  PlanningProblem plan;
};

// Links of the replay know nothing of each other, so every device gets an uplink to the host of its
// own, as fast as the one that it shares with its neighbour on the board. The host has memory for
// whatever goes there. A GPT
// that is given by its blocks is as wide as those of Table II. Errors: those of MakeMpressInstance
// and of topology presets.
absl::StatusOr<ReplayProblem> MakeReplayProblem(const ReplayedModel& model,
                                                const MiniatureScale& scale);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_REPLAY_REPLAY_PROBLEM_H_
