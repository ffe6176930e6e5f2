#ifndef SIPHON_PLANNER_SIMULATOR_GROUP_RESIDENCE_H_
#define SIPHON_PLANNER_SIMULATOR_GROUP_RESIDENCE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "planner/simulator/graph/group_whereabouts.h"
#include "planner/simulator/graph/stage_groups.h"
#include "planner/simulator/graph/step_writer.h"

namespace siphon {

// The tensor groups that a memory plan moves or drops: their copies, and what actions do to them
// layer by layer (planner/memory_plan.h).
class GroupResidence {
 public:
  // The writer must outlive this. Requires: the schedule passes CheckResidency with the plan.
  explicit GroupResidence(StepWriter& writer) : writer_(writer), groups_(writer) {}

  // Requires: the action names a group.
  GroupKind KindOf(const Action& action) const {
    return groups_.GroupsOf(action.stage)[action.group.value].group->kind;
  }
  // The program of a worker begins.
  void BeginProgram(WorkerId worker) { groups_.BeginProgram(worker); }
  // The memory action on a group that is being written. Errors: InvalidArgument when there is no
  // path to where the group goes.
  absl::Status Move();

  // The F, B, I or W that is being written comes to its first layer.
  void BeginCompute();
  // Whether it has to wait, to start a copy or to compute something again when it comes to the
  // layer; and what it does then. Errors: as for Move.
  // `workspace`: what it has for itself, and does not use while it computes again.
  bool Stops(int layer);
  absl::Status Prepare(int layer, Bytes workspace);
  // It is through with the layer: what it has only while it is there goes. Errors: as for Move.
  absl::Status Leave(int layer);

  // `task`, the newest of the lane, is the layer's part of the F that is being written, and saves
  // `stash`; the lane may wait behind it for what leaves. Errors: as for Move.
  absl::Status Forward(int layer, int task, Bytes stash);
  // The F is through with its last layer; likewise.
  void EndForward() { SendOn(leaving_.size()); }

  // Waits for all that is on its way in for an optimizer step of these layers (of the model).
  void PrepareStep(const StageRange& layers);
  // `update` is the task of the UPDATE that is being written: takes memory for the weights before
  // it, where they become a stash and are not away; and the action that is being written, through
  // with its stage, gives back the stash that it was the last one to go by.
  void StashWeights(int update);
  void ReleaseWeights();
  // Bytes of groups of that kind and these layers that are away on the host just now; of a group
  // with other layers as well, these layers' part.
  Bytes OnHost(GroupKind kind, const StageRange& layers);

 private:
  static constexpr int kNone = GroupWhereabouts::kNone;
  using Book = GroupWhereabouts::Book;
  using Where = GroupWhereabouts::Where;

  // Groups that an action has only while it is at their layers, from the same layer on.
  struct Stream {
    int layer = 0;  // at which the action comes to them
    std::vector<int> groups;
  };

  const StageGroups& Groups() { return groups_.groups(); }
  bool IsArriving(int layer, GroupKind kind);
  absl::Status Announce(Where where, Book& book);
  bool BeginsStream(int layer) const;
  // Of the stage whose action is being written.
  int StreamBuffers() const;
  absl::Status StartStream(const Stream& stream);
  // Those as many places before it as there are buffers are gone.
  void MakeRoomFor(size_t stream);
  absl::Status PrepareStream(int layer);
  absl::Status LeaveStreamed(int group);
  bool ComesInUnder(GroupKind kind, int group);
  // The first so many of leaving_ are gone.
  void SendOn(size_t most);
  Bytes RemakeWorkspace(int group);
  void Recompute(int group, Bytes workspace);

  StepWriter& writer_;
  GroupWhereabouts groups_;
  // Of the action that is being written, in the order in which it comes to them:
  std::vector<Stream> streams_;
  size_t next_stream_ = 0;  // to be waited for
  // Of the F that is being written, activations that have started to leave, in that order; the
  // first ones are gone.
  std::vector<int> leaving_;
  size_t gone_ = 0;
  size_t most_leaving_ = 0;  // behind it
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_GROUP_RESIDENCE_H_
