#ifndef SIPHON_PLANNER_PLAN_FILE_STAGE_TEXT_H_
#define SIPHON_PLANNER_PLAN_FILE_STAGE_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/memory_plan.h"
#include "planner/plan_file/plan_words.h"
#include "planner/plan_text.h"

namespace siphon {

// A section "stage N" while it is read.
struct StageLines {
  PlanWord header;
  int first_layer = 0;  // the one behind the stage before
  PlanStage stage;
  StagePlan memory;
  PlanWord worker;               // the number
  std::vector<PlanWord> groups;  // what is said of each
};

// The lines of a stage, each indented. Layers that are alike share a line.
//   worker:             0
//   layers:             0 to 7
//   forward:            12ms
//   layers 0 to 7: forward 1.5ms, ..., stash 384MiB
//   group 0: activations of layers 4 to 7, 384MiB, d2d_swap to device 1 128MiB, device 2 256MiB
std::string LinesOfStage(const PlanStage& stage, const StagePlan& memory);

// Reads one of them. Errors: InvalidArgument with the place. Layers and groups ascend without gaps;
// the stage's "layers" stand before the costs of each.
absl::Status ReadStageLine(const PlanPair& pair, StageLines& lines);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_STAGE_TEXT_H_
