#ifndef SIPHON_PLANNER_LOWERING_PROGRAM_SLOTS_H_
#define SIPHON_PLANNER_LOWERING_PROGRAM_SLOTS_H_

#include <cstddef>
#include <vector>

#include "planner/action.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// The places of one worker's program where memory actions may stand, and those that are to stand
// there. A slot is such a place: before a compute cell, before the reductions behind the last one,
// before a STEP, and the end of the program.
class ProgramSlots {
 public:
  static constexpr int kNone = -1;

  // Slots of a microbatch's forward and of the backward that needs what it has saved.
  struct Life {
    int forward = kNone;
    int backward = kNone;
  };

  // The schedule must outlive this.
  ProgramSlots(const Schedule& schedule, int worker);

  const std::vector<Action>& program() const { return program_; }
  int size() const { return static_cast<int>(slots_.size()); }
  int last() const { return size() - 1; }  // the end of the program
  // Places [begin, end) of what the program does between the slot and the next one; at the last
  // slot nothing.
  int begin(int slot) const { return slots_[slot]; }
  int end(int slot) const { return slots_[slot < last() ? slot + 1 : slot]; }
  // Requires: it is not the last one.
  const Action& ActionAt(int slot) const { return program_[slots_[slot]]; }
  // The last slot that is not behind the place.
  int SlotOf(int place) const;
  const std::vector<int>& forwards() const { return forwards_; }  // slots with a forward
  // Likewise, and all compute slots behind the last of them.
  std::vector<int> ForwardsAndBehind() const;
  Life LifeOf(const Action& action) const { return lives_[PlaceOf(action)]; }
  // Slots of all actions that need such a group of the stage.
  std::vector<int> UsesOf(StageId stage, GroupKind kind) const;
  // How many F, B, I and W of the slot do.
  int ComputeUses(int slot, StageId stage, GroupKind kind) const;
  // Of the stage's first STEP; kNone without.
  int StepSlot(StageId stage) const;
  // Where optimizer state begins to come in for the STEP in a slot: so many compute actions before
  // it; 0: behind the last one, but before reductions, in which the worker waits for all others.
  int ComingSlot(int step, int ahead) const;
  // Where what leaves behind a STEP is gone: before the next compute action, which may need the
  // room, where the stage steps just in time; else at the end of the program.
  int GoneAfterStep(int step) const;

  // What stands in a slot, in this order: what makes room, what takes it (for slot `needed`), what
  // is computed again for that slot, what the coming action does with its activations, or with what
  // it has layer by layer.
  void AddLeaving(int slot, const Action& action) { before_[slot].leaving.push_back(action); }
  void AddComing(int slot, int needed, const Action& action) {
    before_[slot].coming.push_back({needed, action});
  }
  void AddMade(int slot, int needed, const Action& action) {
    before_[slot].made.push_back({needed, action});
  }
  void AddForward(int slot, const Action& action) { before_[slot].forward.push_back(action); }
  // What is needed first comes first, of one backward the last layers.
  void Write(int slot, std::vector<Action>& lowered) const;

 private:
  struct Coming {
    int needed;  // slot of the use
    Action action;
  };
  struct SlotActions {
    std::vector<Action> leaving;
    std::vector<Coming> coming;
    std::vector<Coming> made;
    std::vector<Action> forward;
  };

  size_t PlaceOf(const Action& action) const {
    return static_cast<size_t>(action.stage.value) * microbatches_ + action.microbatch.value;
  }
  void FindSlots();
  static bool ComesBefore(const Coming& a, const Coming& b);
  static void WriteComing(std::vector<Coming> coming, std::vector<Action>& lowered);

  const int microbatches_;
  const std::vector<Action>& program_;
  std::vector<int> slots_;  // places, ascending
  std::vector<int> forwards_;
  std::vector<Life> lives_;  // [stage, microbatch]
  std::vector<SlotActions> before_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_PROGRAM_SLOTS_H_
