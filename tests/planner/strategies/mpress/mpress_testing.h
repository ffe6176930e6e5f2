#ifndef SIPHON_TESTS_PLANNER_STRATEGIES_MPRESS_MPRESS_TESTING_H_
#define SIPHON_TESTS_PLANNER_STRATEGIES_MPRESS_MPRESS_TESTING_H_

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// Layers of 10 ns forward and 20 ns backward that save 100 bytes; boundaries of 10 bytes; one byte
// of parameters and of gradients, two of optimizer state. 1F1B, compute actions only, workers
// without a limit, connected for nothing.
inline PlanningProblem EqualLayers(int stages, int layers_a_stage, int microbatches) {
  PlanningProblem problem;
  for (int stage = 0; stage < stages; ++stage) {
    const int begin = stage * layers_a_stage;
    problem.partition.stages.push_back({begin, begin + layers_a_stage});
    for (int layer = begin; layer < begin + layers_a_stage; ++layer) {
      problem.profile.layers.push_back({.name = absl::StrCat("layer ", layer),
                                        .forward = Nanos(10),
                                        .input_backward = Nanos(10),
                                        .weight_backward = Nanos(10),
                                        .parameters = Bytes(1),
                                        .gradients = Bytes(1),
                                        .optimizer_state = Bytes(2),
                                        .boundary = Bytes(10),
                                        .saved = {{"all", Bytes(100)}}});
    }
  }
  problem.schedule =
      BuildSchedule("1f1b", {.workers = stages, .microbatches = microbatches}).value();
  problem.granule = Bytes(1);
  return problem;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_STRATEGIES_MPRESS_MPRESS_TESTING_H_
