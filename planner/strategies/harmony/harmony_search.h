#ifndef SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_SEARCH_H_
#define SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_SEARCH_H_

#include <functional>

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"

namespace siphon {

// What another folder does for the search: BuildSchedule of pipeline/schedules, asked for
// harmony_pp.
struct HarmonyTools {
  std::function<absl::StatusOr<Schedule>(absl::string_view name, const ScheduleShape& shape)>
      build_schedule;
};

// What goes to the host between uses: each has what the ones before have.
enum class HarmonyAway { kNothing, kOptimizerState, kParameters, kGradients };

// How many actions early copies come in: a double buffer.
struct HarmonyBuffers {
  int passes_ahead = 0;  // weights, before their pack
  int steps_ahead = 0;   // optimizer state, before its step
  friend bool operator==(const HarmonyBuffers&, const HarmonyBuffers&) = default;
};

// How much of a stage's optimizer state that is away comes in and steps at once. By layer, that of
// the next one comes in meanwhile.
enum class HarmonyUpdates { kWholeStage, kByLayer };

// One point of the search.
struct HarmonyChoice {
  ScheduleShape shape;  // chunks, packs and microbatch groups, both forward and backward
  StagePartition partition;
  HarmonyAway away = HarmonyAway::kNothing;
  Placement activations = Placement::kKeep;  // or kHostSwap, kRecompute: of all stages
  HarmonyUpdates updates = HarmonyUpdates::kWholeStage;
  HarmonyBuffers buffers;
};

struct HarmonyPlan {
  HarmonyChoice choice;
  PlanningProblem problem;  // with the choice's partition and schedule
  PlannedStep planned;
  int simulations = 0;
};

// Harmony-PP (Li et al., HotOS 2021, section 3), on the problem's workers with its microbatches:
// searches the number of stages, pack sizes and the microbatches that go through a pack before the
// next one, both forward and backward apart, stages balanced by time, by bytes, or by compute and
// swap at once (HarmonyCutter), what is away, and double buffers, of all that comes in or of a
// part; returns the shortest simulated step that fits. Partition and schedule of the problem are
// not used. Stages are updated just in time, so a global norm of gradients is not known.
//
// All combinations where there are few; else numbers of stages a worker are powers of two, the
// most, and the fewest for stages of a few layers, and groups are alike forward and backward at
// first; then one of the two is larger in the fastest of these. Shapes that would be slower with
// everything kept than a plan already found are left out.
//
// Errors: ResourceExhausted when nothing fits; InvalidArgument for fewer layers than workers, or no
// way to the host; those of `tools`.
absl::StatusOr<HarmonyPlan> SearchHarmony(const PlanningProblem& problem,
                                          const HarmonyTools& tools);

// The plan of one point of the search for a problem that has its partition and its schedule, with
// second choices. Errors: as LowerMemoryPlan and Simulate: ResourceExhausted when it does not fit.
absl::StatusOr<PlannedStep> PlanHarmony(const PlanningProblem& problem,
                                        const HarmonyChoice& choice);

// Bytes of groups of that kind that the program's SWAP_OUTs and SWAP_INs move in a step, one
// replica. With each pack's weights loaded once forward and once backward, and stored once when
// they are updated, Harmony-PP moves 3 |W| of parameters (its Figure 5), less what stays on the
// device from a worker's last forward pack to its first backward pack. Requires: WeightResidence::
// kWholeActions.
Bytes BytesMoved(const Schedule& schedule, const MemoryPlan& plan, GroupKind kind);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_SEARCH_H_
