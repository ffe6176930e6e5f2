#ifndef SIPHON_PLANNER_LOWERING_STEP_UNITS_H_
#define SIPHON_PLANNER_LOWERING_STEP_UNITS_H_

#include <limits>
#include <vector>

#include "planner/action.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/program_slots.h"
#include "planner/memory_plan.h"

namespace siphon {

// The STEPs of one worker's stages, group by group: which groups of optimizer state step by
// themselves, and when they, and weights that are away, come in for that and leave again.
class StepUnits {
 public:
  // `stages` are the worker's. All but them must outlive this.
  StepUnits(const std::vector<StageId>& stages, const MemoryPlan& plan,
            const LowerMemoryOptions& options, ProgramSlots& slots);

  // Puts what happens away from the STEP into the slots: the first units' way in, and that of what
  // is home between steps. Once a stage.
  void AddStage(StageId stage);
  // The STEP in that slot was waited for with the group, which leaves behind it.
  void LeaveBehind(int slot, StageId stage, GroupId group);
  // The stage's `step` with its units before it. Requires: AddStage.
  void Write(const Action& step, std::vector<Action>& lowered) const;

 private:
  // A group of optimizer state that steps by itself, and what comes in for that and leaves again.
  struct Unit {
    GroupId state;
    std::vector<GroupId> moving;
  };
  struct StepEnd {
    std::vector<GroupId> home;        // optimizer state that is there between steps
    std::vector<Unit> units;          // those first with which nothing moves
    std::vector<Action> behind_step;  // copies out that the STEP was waited for with
  };

  void FindFirstStep(const std::vector<StageId>& stages);
  void AddUnits(StageId stage);
  void AddWholeStep(StageId stage, GroupId group);
  void AddHome(StageId stage);

  const MemoryPlan& plan_;
  const LowerMemoryOptions& options_;
  ProgramSlots& slots_;
  std::vector<StepEnd> ends_;                         // [stage]
  int first_step_ = std::numeric_limits<int>::max();  // slot
  // No stage of the worker steps on the host, which may have more to come in between steps.
  bool may_be_home_ = true;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_STEP_UNITS_H_
