#ifndef SIPHON_PLANNER_ACTION_H_
#define SIPHON_PLANNER_ACTION_H_

#include <compare>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/ids.h"

namespace siphon {

// What a worker can be told to do. The first eight and REDUCE_GRAD are
// torch.distributed.pipelining's, with its names.
enum class ActionKind {
  kForward,         // F
  kBackward,        // B   input and weight gradients
  kBackwardInput,   // I
  kBackwardWeight,  // W
  kSendForward,     // SEND_F  output of (stage, microbatch) to the worker of stage + 1
  kReceiveForward,  // RECV_F  input of (stage, microbatch) from the worker of stage - 1
  kSendBackward,  // SEND_B  gradient of the input of (stage, microbatch) to the worker of stage - 1
  kReceiveBackward,  // RECV_B  gradient of the output of (stage, microbatch) from the worker of
                     // stage + 1
  kReduceGradient,   // REDUCE_GRAD  adds up gradients of parameters that several stages use; no
                     // microbatch
  kReduceNorm,       // REDUCE_NORM  all workers agree on the global gradient norm; named after the
                     // worker's first stage
  kStep,             // STEP  optimizer step of the stage; no microbatch
  kUpdate,  // UPDATE  asynchronous optimizer step of the stage: a new weight version from the
            // gradients of all microbatches up to this one that no UPDATE has used yet
  // What happens to a tensor group (planner/memory_plan.h), or to all the activations that (stage,
  // microbatch) keeps for its backward. A start lets the program go on, its end waits until the
  // copy is complete.
  kSwapOut,     // SWAP_OUT
  kSwapOutEnd,  // SWAP_OUT_END  the memory is free from here on
  kSwapIn,      // SWAP_IN  takes memory from here on
  kSwapInEnd,   // SWAP_IN_END  usable from here on
  kDrop,        // DROP  activations: to be computed again; others: their copy elsewhere still holds
  kRecompute,   // RECOMPUTE  from the input of the stage, or of the group's first layer
};
inline constexpr int kActionKinds = static_cast<int>(ActionKind::kRecompute) + 1;

// A compound cell is two compute actions of one worker that may run at the same time, as in
// DualPipe. Ours run one after the other, in the order in which they stand.
enum class Pairing {
  kAlone,
  kWithNext,  // the first of a compound cell: "(0F7;7B3)OVERLAP_F_B"
};

// Text of a kind ("F", "SEND_F", ...), and whether its actions carry a microbatch (those of a group
// that belongs to no microbatch do not: see below).
absl::string_view ActionKindName(ActionKind kind);
bool HasMicrobatch(ActionKind kind);
bool IsCompute(ActionKind kind);        // F, B, I, W
bool IsCommunication(ActionKind kind);  // SEND_*, RECV_*
bool IsReduction(ActionKind kind);      // REDUCE_*
bool IsMemory(ActionKind kind);         // SWAP_*, DROP, RECOMPUTE

// One of the tensor groups of a stage: its place in StagePlan::groups (planner/memory_plan.h).
using GroupId = Id<struct GroupTag>;
// Of an action that means its whole stage.
inline constexpr GroupId kWholeStage{-1};
// Of an action on a group that is there once, whatever the microbatch: parameters, gradients,
// optimizer state.
inline constexpr MicrobatchId kNoMicrobatch{-1};

// One thing that a worker does. Prints as "2F5", "0SEND_F1", "3STEP" and parses back (alone,
// without its pairing: compound cells are the text of a schedule, schedule.h). Memory actions and
// STEP may name a group: "2SWAP_OUT5.3" (group 3, its activations of microbatch 5), "2SWAP_IN.7"
// (group 7, which belongs to no microbatch), "2STEP.7" (the optimizer step of its layers).
struct Action {
  StageId stage;
  ActionKind kind = ActionKind::kForward;
  MicrobatchId microbatch;  // 0 where HasMicrobatch(kind) is false
  Pairing pairing = Pairing::kAlone;
  GroupId group = kWholeStage;
  friend auto operator<=>(const Action&, const Action&) = default;
};

// That the action's text has a microbatch.
bool HasMicrobatch(const Action& action);
// That actions of this kind may name a group.
bool TakesGroup(ActionKind kind);

std::string ToString(const Action& action);
// Errors: InvalidArgument with the offending text and what is wrong (no stage, unknown kind with
// the known ones listed, missing or superfluous microbatch or group, number out of range).
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_PLANNER_ACTION_H_
