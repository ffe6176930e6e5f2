#ifndef SIPHON_PIPELINE_STATE_SWAPS_H_
#define SIPHON_PIPELINE_STATE_SWAPS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/step_recorder.h"
#include "pipeline/worker_layout.h"
#include "planner/action.h"
#include "planner/group_state.h"
#include "planner/home_groups.h"
#include "swap/swap_engine.h"

namespace siphon {

// What of a stage's training state has no memory of the worker's between steps: groups that are
// away then, by the plan and the training programs, whose `home` this is (HomeGroupsOf), and all
// its optimizer state where the step is on the host.
std::vector<StateGroup> StateGroupsAway(const MemoryPlan& plan, const HomeGroups& home,
                                        StageId stage);

// Parameters, gradients and optimizer state of one worker that are away between their uses. What
// the actions mean: planner/memory_plan.h. Lives from before the first step until the end.
//
// Thread-safety: one thread. The arguments outlive this; `engine` may be null when nothing moves.
// Errors: FailedPrecondition for what the program does in an impossible order, and those of stages
// and engine.
class StateSwaps {
 public:
  StateSwaps(const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
             SwapEngine* engine);
  StateSwaps(const StateSwaps&) = delete;
  StateSwaps& operator=(const StateSwaps&) = delete;

  // One group after the other of those that are away between steps gets the values that training
  // starts with, and leaves. Once, before the first step. Requires: the stages were made with
  // StateGroupsAway freed.
  absl::Status SendAway();

  // Of a step; `recorder` is told of waits until EndStep.
  void BeginStep(StepRecorder* recorder) { recorder_ = recorder; }
  // SWAP_*, DROP of a group that belongs to no microbatch.
  absl::Status Run(const Action& action);
  // An F, B, I or W, and what it says on its way (PassWatch).
  void BeginPass(const Action& action);
  absl::Status Enter(StageId stage, int layer);
  absl::Status Leave(StageId stage, int layer);
  // The parameters of these layers, if they are on their way in, are there after this.
  absl::Status NeedParameters(StageId stage, StageRange layers);
  // Likewise all that the optimizer step of these layers takes.
  absl::Status NeedForStep(StageId stage, StageRange layers);
  // Behind the last action: everything is where it is between steps.
  absl::Status EndStep();

  // Between steps: the memory of tensor `index` of State() of the stage, whose group comes in if it
  // is away, and is away again after the next call or Close. Writing has to be said.
  enum class Access { kRead, kWrite };
  absl::StatusOr<absl::Span<std::byte>> Open(StageId stage, size_t index, Access access);
  absl::Status Close();

 private:
  enum class Where { kAway, kComing, kThere, kLeaving };
  struct Book {
    StateGroup group;
    Where where = Where::kAway;
    bool home = false;     // there between steps
    bool streams = false;  // announced for the next action that uses it
  };
  using Place = std::pair<StageId, GroupId>;
  // What comes in together when the pass reaches a layer.
  struct Stream {
    int layer = 0;
    std::vector<GroupId> groups;
  };

  using Move = absl::Status (StateSwaps::*)(Place, Book&);

  static absl::Status BadState(const Action& action, const Book& book);
  // SWAP_OUT and DROP: of what is not there they mean that the next action that uses it streams it.
  absl::Status Go(const Action& action, Book& book, Move move);

  // The moves themselves, whatever the program says. Parts of an action have a name of their own.
  absl::Status StartOut(Place place, Book& book);
  absl::Status FinishOut(Place place, Book& book);
  absl::Status StartIn(Place place, Book& book);
  absl::Status FinishIn(Place place, Book& book);
  absl::Status DropNow(Place place, Book& book);
  absl::Status Part(Place place, ActionKind kind, Move move);
  // Waits for what is on its way in, of kinds that are `wanted`.
  template <typename Wanted>
  absl::Status Arrive(StageId stage, StageRange layers, const Wanted& wanted);

  bool Uses(GroupKind kind) const { return UsesGroups(pass_.kind, kind); }
  absl::Status StartStream(const Stream& stream);
  // Waits for those of its groups that are `moving`: kComing or kLeaving.
  absl::Status FinishStream(const Stream& stream, Where moving);
  // Waits until those as many places before it as there are buffers are gone.
  absl::Status MakeRoomFor(size_t stream);
  absl::Status PrepareStream(int layer);
  std::optional<Place> OpenedAt(StageId stage, const StateTensor& tensor) const;

  const std::map<StageId, StageCompute*>& stages_;
  SwapEngine* const engine_;
  StepRecorder* recorder_ = nullptr;
  std::map<Place, Book> books_;
  std::map<StageId, int> stream_buffers_;
  Action pass_;  // under way
  std::vector<Stream> streams_;
  size_t next_stream_ = 0;
  std::optional<Place> open_;
  Access access_ = Access::kRead;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STATE_SWAPS_H_
