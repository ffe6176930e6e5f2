#ifndef SIPHON_PLANNER_SIMULATOR_GROUP_WHEREABOUTS_H_
#define SIPHON_PLANNER_SIMULATOR_GROUP_WHEREABOUTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "planner/simulator/graph/stage_groups.h"
#include "planner/simulator/graph/step_writer.h"
#include "planner/simulator/step_accounts.h"
#include "planner/weight_stashes.h"

namespace siphon {

// Where tensor groups are while a step is written, and their copies.
class GroupWhereabouts {
 public:
  static constexpr int kNone = StepWriter::kNone;

  enum class Where : uint8_t { kThere, kToDrop, kToSwap, kDropped, kArriving, kAway };

  // A group's activations of one microbatch, weights of one version, or another kind of group.
  struct Book {
    Where where = Where::kThere;
    // Activations: the F has been written. Weight versions: a stash has memory of its own.
    bool made = false;
    int swap_out = kNone;    // place of the SWAP_OUT before the F
    int first_copy = kNone;  // of the latest swap: tasks [first_copy, first_copy + copies)
    int copies = 0;
    // kToDrop, kToSwap, and activations that an action has in by itself: the copy in has been
    // started.
    bool coming = false;
    bool under_forward = false;  // activations, kToSwap: gone before the F is through
    bool streamed = false;       // the latest copies out give back the memory themselves
    Bytes owed;                  // memory that waiting for them gives back instead
  };

  // As a step begins. The writer must outlive this.
  explicit GroupWhereabouts(StepWriter& writer);

  // The program of a worker begins.
  void BeginProgram(WorkerId worker);
  // Of the stage of the action that is being written, as all that follows.
  const StageGroups& groups() {
    LookAtAction();
    return *groups_;
  }
  const StageGroups& GroupsOf(StageId stage) const { return stages_[stage.value]; }
  // Requires, for weight versions: GoesByStash, or a memory action on them.
  Book& Of(int group) {
    LookAtAction();
    const GroupKind kind = (*groups_)[group].group->kind;
    if (kind == GroupKind::kWeightVersions) return of_version_[group];
    return (kind == GroupKind::kActivations ? of_microbatch_ : of_step_)[group];
  }
  // Whether the action goes by older weights than the newest, or makes such a stash.
  bool GoesByStash() const { return stashes_.At(writer_.place()) != WeightStashes::kNone; }
  // Requires: it does.
  const WeightStash& stash() const { return stashes_.stashes[stashes_.At(writer_.place())]; }

  // Errors: InvalidArgument when there is no path to where the group goes.
  absl::Status StartCopies(int group, CopyDirection direction);
  // The copy out is the SWAP_OUT's, which has waited for what is being written.
  absl::Status StartAnnouncedCopies(int group);
  void WaitForCopies(Book& book);
  // The group is there from here on.
  void Arrive(int group);

 private:
  void AddCopy(int group, CopyDirection direction, const Route& route, int account, Bytes bytes);
  void LookAtAction() {
    if (looked_at_ != writer_.place()) FindBooks();
  }
  void FindBooks();

  StepWriter& writer_;
  const std::vector<StageGroups> stages_;
  const StepAccounts accounts_;
  std::vector<std::vector<Book>> books_;  // [replica, stage][microbatch * groups + group]
  WeightStashes stashes_;                 // of the program that is being written
  // Of the action that was looked at last, which is asked for thousands of times:
  int looked_at_ = kNone;  // its place in the program
  const StageGroups* groups_ = nullptr;
  Book* of_microbatch_ = nullptr;  // [group], as the others
  Book* of_version_ = nullptr;
  Book* of_step_ = nullptr;  // of what is there once
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_GROUP_WHEREABOUTS_H_
