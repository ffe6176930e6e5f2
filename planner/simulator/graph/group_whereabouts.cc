#include "planner/simulator/graph/group_whereabouts.h"

#include <cstddef>
#include <utility>

#include "planner/home_groups.h"
#include "planner/memory/group_memory.h"
#include "planner/status.h"

namespace siphon {

GroupWhereabouts::GroupWhereabouts(StepWriter& writer)
    : writer_(writer), stages_(GroupsOfStages(writer.input())), accounts_(writer.input()) {
  const Schedule& schedule = writer.input().schedule;
  const HomeGroups home = HomeGroupsOf(schedule, writer.input().memory);
  books_.resize(static_cast<size_t>(schedule.replicas) * stages_.size());
  for (size_t row = 0; row < books_.size(); ++row) {
    const size_t stage = row % stages_.size();
    const StageGroups& groups = stages_[stage];
    books_[row].resize(static_cast<size_t>(groups.size()) *
                       static_cast<size_t>(schedule.microbatches));
    for (int group = 0; group < groups.size(); ++group) {
      const bool away = !IsPassing(groups[group].group->kind) &&
                        groups[group].choice->placement != Placement::kKeep &&
                        !home.contains({StageId(static_cast<int>(stage)), GroupId(group)});
      if (away) books_[row][group].where = Where::kAway;
    }
  }
}

void GroupWhereabouts::FindBooks() {
  const Action& action = writer_.action();
  looked_at_ = writer_.place();
  groups_ = &stages_[action.stage.value];
  const size_t row = static_cast<size_t>(writer_.replica()) * stages_.size() + action.stage.value;
  of_step_ = books_[row].data();
  const auto of_copy = [&](MicrobatchId copy) {
    return of_step_ + static_cast<std::ptrdiff_t>(copy.value) * groups_->size();
  };
  of_microbatch_ = action.microbatch == kNoMicrobatch ? of_step_ : of_copy(action.microbatch);
  of_version_ = GoesByStash() ? of_copy(stash().update) : of_microbatch_;
}

void GroupWhereabouts::BeginProgram(WorkerId worker) {
  stashes_ = FindWeightStashes(writer_.input().schedule, worker);
  looked_at_ = kNone;
}

absl::Status GroupWhereabouts::StartCopies(int group, CopyDirection direction) {
  const auto& [tensors, choice, first, last] = groups()[group];
  Book& book = Of(group);
  book.first_copy = kNone;
  book.copies = 0;
  StepResources& resources = writer_.resources();
  const int worker = writer_.account();
  if (choice->placement == Placement::kHostSwap) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, resources.HostCopy(worker, direction));
    AddCopy(group, direction, route, accounts_.OfHostOf(worker), tensors->bytes);
  } else if (choice->placement == Placement::kNvmeSwap) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, resources.DriveCopy(worker, direction));
    AddCopy(group, direction, route, accounts_.OfDriveOf(worker), tensors->bytes);
  }
  for (const Stripe& stripe : choice->stripes) {
    SIPHON_ASSIGN_OR_RETURN(const Route route,
                            resources.PeerCopy(worker, stripe.lender, direction));
    AddCopy(group, direction, route, accounts_.OfDevice(stripe.lender), stripe.bytes);
  }
  return absl::OkStatus();
}

absl::Status GroupWhereabouts::StartAnnouncedCopies(int group) {
  const int here = writer_.place();
  writer_.BeginAction(Of(group).swap_out);
  const absl::Status started = StartCopies(group, CopyDirection::kOut);
  writer_.BeginAction(here);
  return started;
}

void GroupWhereabouts::AddCopy(int group, CopyDirection direction, const Route& route, int account,
                               Bytes bytes) {
  Book& book = Of(group);
  const int copy = writer_.AddCopy(TaskRole::kSwap, route, bytes);
  if (book.copies++ == 0) book.first_copy = copy;
  if (book.streamed && direction == CopyDirection::kOut) {
    if (writer_.input().frees_at_waits) {
      book.owed += bytes;
    } else {
      writer_.Change(copy, TaskMoment::kEnd, MemoryKindOf(groups()[group].group->kind), bytes * -1);
    }
  }
  // Of other kinds the place for what is away stays theirs for the whole step.
  const GroupKind kind = groups()[group].group->kind;
  if (!IsPassing(kind)) return;
  const bool out = direction == CopyDirection::kOut;
  writer_.ChangeAt(account, copy, out ? TaskMoment::kBegin : TaskMoment::kEnd,
                   accounts_.IsDevice(account) ? MemoryKind::kLent : MemoryKindOf(kind),
                   out ? bytes : bytes * -1);
}

void GroupWhereabouts::WaitForCopies(Book& book) {
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  for (int copy = book.first_copy; copy < book.first_copy + book.copies; ++copy) {
    writer_.Wait(end, copy);
  }
  if (book.owed == Bytes(0)) return;
  writer_.Change(end, TaskMoment::kEnd, MemoryKind::kGradients,
                 std::exchange(book.owed, Bytes(0)) * -1);
}

void GroupWhereabouts::Arrive(int group) {
  Book& book = Of(group);
  book.where = Where::kThere;
  WaitForCopies(book);
}

}  // namespace siphon
