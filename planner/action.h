#ifndef SIPHON_PLANNER_ACTION_H_
#define SIPHON_PLANNER_ACTION_H_

#include <compare>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/ids.h"

namespace siphon {

// What a worker can be told to do. The first eight are torch.distributed.pipelining's, with its
// names.
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
};

// Text of a kind ("F", "SEND_F", ...), and whether its actions carry a microbatch.
absl::string_view ActionKindName(ActionKind kind);
bool HasMicrobatch(ActionKind kind);
bool IsCompute(ActionKind kind);        // F, B, I, W
bool IsCommunication(ActionKind kind);  // SEND_*, RECV_*

// One cell of a schedule. Prints as "2F5", "0SEND_F1", "3STEP" and parses back.
struct Action {
  StageId stage;
  ActionKind kind = ActionKind::kForward;
  MicrobatchId microbatch;  // 0 where HasMicrobatch(kind) is false
  friend auto operator<=>(const Action&, const Action&) = default;
};

std::string ToString(const Action& action);
// Errors: InvalidArgument with the offending text and what is wrong (no stage, unknown kind with
// the known ones listed, missing or superfluous microbatch, number out of range).
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_PLANNER_ACTION_H_
