#ifndef SIPHON_PLANNER_LOWERING_LOWER_MEMORY_PLAN_H_
#define SIPHON_PLANNER_LOWERING_LOWER_MEMORY_PLAN_H_

#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// When the copies of one stage may run: the longer, the more work hides them, and the more memory
// holds tensors that are on their way.
struct SwapTiming {
  // SWAP_OUT_END stands before so many of the worker's forwards behind the F. 0: right behind the
  // F, so that what comes in for the next backward finds room.
  // Of weight versions, behind the UPDATE that replaces them; 0 and 1: right before that, so that
  // it overwrites them and no memory is taken.
  int forwards_to_leave = 1;
  // SWAP_IN stands so many compute actions before the one that needs the tensors. 0: right before
  // it, so that only the backward of the layers behind hides the copy.
  int actions_to_come_back = 1;
  // Which activations stay where the worker's forwards end and its backwards begin.
  enum class Turn {
    // Those with no forward behind theirs: nothing would use the room, unless others come back.
    kLastStay,
    // Those that the backward behind the last forward needs, which would have to come back while
    // the last ones leave. The last ones leave beside backwards: behind the last forward, all
    // compute actions count for forwards_to_leave.
    kFirstStay,
  };
  Turn turn = Turn::kLastStay;
  // The same before STEP, whose first groups of optimizer state come in while earlier work runs;
  // 0: behind the last of it, while the worker waits for all others' norms (REDUCE_NORM) ...
  int actions_before_step = 0;
  // ... and so many groups more than the one that steps are in at a time, one more on its way out.
  int groups_ahead = 1;
  // Of the stage's groups of optimizer state that are swapped, so many, the first ones, are away
  // between steps; the others are home then (planner/home_groups.h). Those leave from the step's
  // begin on, and are gone, one after the other, when the worker has computed this many forwards;
  // they come back one after the other during so many of its last actions before its first STEP.
  static constexpr int kAllGroups = std::numeric_limits<int>::max();
  int groups_away_between_steps = kAllGroups;
  // Whether that holds, too, where the worker has a stage that steps on the host: of this stage, if
  // it does, the groups that are home step on the device.
  bool home_beside_host = false;
  int forwards_to_leave_home = 1;
  int actions_to_come_home = 1;
  // Parameters and gradients stay between two uses with at most so many actions from the one to the
  // other; 2 at least, for them to leave and come back.
  int actions_to_stay = 2;
  // Gradients that are in layer by layer (WeightResidence::kLayerByLayer): so many groups, those
  // that an action comes to first, are on their way in while the worker does what stands before it,
  // unless that has them in itself.
  int gradients_ahead = 0;
  // Of the stage's groups of activations that are swapped so many, the last ones, may be on their
  // way out behind their forward, as above. The others leave under it: it never has more of them
  // there than these, or one, and the one that it makes.
  int groups_out_behind = kAllGroups;
  // Likewise so many, the last ones, which a backward comes to first, come in before it, as above.
  // The others come in under it, one after the other.
  int groups_in_before = kAllGroups;
  friend bool operator==(const SwapTiming&, const SwapTiming&) = default;
};

// When optimizer state leaves and comes in, group by group, instead of as SwapTiming says for all.
// The last entry of each stands for all groups behind it; empty: as SwapTiming says.
struct StateTimes {
  // Of what is home between steps.
  std::vector<int> gone;  // when the worker has computed so many forwards
  std::vector<int> back;  // so many actions before the worker's first STEP
  // Of what is away between steps and comes in before the stage's STEP: so many actions before it.
  std::vector<int> in;
  friend bool operator==(const StateTimes&, const StateTimes&) = default;
};

// What becomes of activations to be recomputed whose backward follows their forward directly.
enum class DirectBackward {
  kLeave,  // they stay: their worker never holds more for it, except in that backward itself
  kDrop,   // they go like all others: the backward then holds one group at a time
};

// How long parameters and gradients that are away are in for their uses.
enum class WeightResidence {
  kWholeActions,  // from the first use to the last, away where the next one is far enough
  // Each F, B, I and W has them only while it is at their layers, so that of parameters at most two
  // layers' are there at once, of gradients three, or as many as StagePlan::stream_buffers says;
  // they step group by group.
  kLayerByLayer,
};

struct LowerMemoryOptions {
  std::vector<SwapTiming> timing;        // [stage]; empty: the default for all
  std::vector<DirectBackward> direct;    // [stage]; empty: kLeave for all
  std::vector<WeightResidence> weights;  // [stage]; empty: kWholeActions for all
  std::vector<StateTimes> state_times;   // [stage]; empty: as SwapTiming says for all
  // [layer of the model]: where a group of activations that begins with it is computed again:
  // within the backward, or so many compute actions before it (0: right before it). There that
  // hides where the worker waits for its gradient; but the group takes its memory earlier. Empty:
  // kInBackward.
  static constexpr int kInBackward = -1;
  std::vector<int> made_ahead;
  // [layer of the model]: of a group of activations that begins with it so many of kShares
  // microbatches go as the plan says, the first ones of each kShares and spread among them; the
  // others stay. Empty: all go.
  static constexpr int kShares = 8;
  std::vector<int> shares;
};

// Whether the microbatch is one of those.
bool Goes(MicrobatchId microbatch, int share);

// `schedule` with the memory actions that `plan` means (planner/memory_plan.h):
// - activations leave behind their F and are back for their B or I; those of a microbatch whose
//   backward follows its forward directly stay, and where copies out have until the next forward,
//   those without one in between, since nothing would use the room (or others: SwapTiming::Turn);
// - what is to be computed again is so within its B or I; or before it, but for backwards that
//   follow their forward directly, and for stages whose weights are away at times;
// - a weight version goes as soon as it is made, and is back for the first action that goes by it
//   behind the UPDATE which replaces it; it stays where that follows too soon for it to be away
//   in between. It leaves once: PipeDream uses most versions once more, and leaving twice would
//   need a name for each time;
// - parameters, gradients and optimizer state are in from their first use to their last, and away
//   in between where the worker does other things for long enough (gradients also for the first
//   backward of a step, and out again behind the optimizer step); or parameters and gradients are
//   in layer by layer (a compound cell with several actions of the stage has all of them);
// - groups of optimizer state that are away step one after the other, each with a STEP of its own
//   before the stage's plain STEP: those that are home between steps first, since they are there
//   first, and nothing moves behind their STEP; layer by layer, so do those whose parameters or
//   gradients are away, and these come and go with them. A step on the host uses what it has there
//   already.
// Memory actions stand before compute actions (before a compound cell as a whole), around STEPs and
// at the end: never between two messages, so that what can be posted together still is.
//
// Requires: the schedule is valid. Errors: InvalidArgument when plan or options are not of the
// schedule's stages, FailedPrecondition for a schedule that has memory actions already, or
// asynchronous updates of a stage whose parameters, gradients or optimizer state shall be away.
// O(actions + groups x microbatches).
absl::StatusOr<Schedule> LowerMemoryPlan(Schedule schedule, const MemoryPlan& plan,
                                         const LowerMemoryOptions& options);

// The program of one worker in it. Requires: CheckLowering.
std::vector<Action> LowerProgram(const Schedule& schedule, WorkerId worker, const MemoryPlan& plan,
                                 const LowerMemoryOptions& options);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_LOWER_MEMORY_PLAN_H_
