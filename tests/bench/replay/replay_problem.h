#ifndef SIPHON_TESTS_BENCH_REPLAY_REPLAY_PROBLEM_H_
#define SIPHON_TESTS_BENCH_REPLAY_REPLAY_PROBLEM_H_

#include <string>

#include "absl/status/statusor.h"
#include "pipeline/synthetic/shrink_problem.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// What is replayed.
struct ReplayedModel {
  std::string name;                    // of a row of Table II, or how many blocks a GPT has
  std::string topology = "dgx1_v100";  // a preset
  Bytes memory;                        // of each device; 0: as the preset says
};
std::string ToString(const ReplayedModel& model);

// A model of MPress's Table II on a server, in small. Links of the replay know nothing of each
// other, so every device gets an uplink to the host of its own, as fast as the one that it shares
// with its neighbour on the board. The host has memory for whatever goes there. Errors: those of
// MakeMpressInstance and of topology presets.
absl::StatusOr<PlanningProblem> MakeReplayProblem(const ReplayedModel& model,
                                                  const MiniatureScale& scale);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_REPLAY_REPLAY_PROBLEM_H_
