#include "planner/simulator/group_residence.h"

#include <algorithm>
#include <cstddef>

#include "planner/status.h"

namespace siphon {
namespace {

MemoryKind KindOf(GroupKind kind) {
  switch (kind) {
    case GroupKind::kActivations:
      return MemoryKind::kActivations;
    case GroupKind::kParameters:
      return MemoryKind::kParameters;
    case GroupKind::kGradients:
      return MemoryKind::kGradients;
    case GroupKind::kOptimizerState:
      return MemoryKind::kOptimizer;
  }
  return MemoryKind::kActivations;
}

}  // namespace

GroupResidence::GroupResidence(StepWriter& writer)
    : writer_(writer), stages_(GroupsOfStages(writer.input())), accounts_(writer.input()) {
  const Schedule& schedule = writer.input().schedule;
  books_.resize(static_cast<size_t>(schedule.replicas) * stages_.size());
  for (size_t row = 0; row < books_.size(); ++row) {
    const auto groups = static_cast<size_t>(stages_[row % stages_.size()].size());
    books_[row].resize(groups * static_cast<size_t>(schedule.microbatches));
  }
}

GroupResidence::Book& GroupResidence::BookOf(int group) {
  const Action& action = writer_.action();
  const size_t row = static_cast<size_t>(writer_.replica()) * stages_.size() + action.stage.value;
  const auto groups = static_cast<size_t>(Groups().size());
  return books_[row][static_cast<size_t>(action.microbatch.value) * groups + group];
}

int GroupResidence::GroupAt(int layer) const { return Groups().At(layer, GroupKind::kActivations); }

absl::Status GroupResidence::Move() {
  const int group = writer_.action().group.value;
  const TensorGroup& tensors = *Groups()[group].group;
  Book& book = BookOf(group);
  switch (writer_.action().kind) {
    case ActionKind::kDrop:
      book.where = Where::kToDrop;
      return absl::OkStatus();
    case ActionKind::kSwapOut:
      book.swap_out = writer_.place();
      if (book.made) return StartCopies(group, CopyDirection::kOut);
      book.where = Where::kToSwap;
      return absl::OkStatus();
    case ActionKind::kSwapOutEnd:
      WaitForCopies(book);
      writer_.Change(writer_.last(), TaskMoment::kEnd, KindOf(tensors.kind), tensors.bytes * -1);
      return absl::OkStatus();
    case ActionKind::kSwapIn:
      book.where = Where::kArriving;
      writer_.Change(writer_.last(), TaskMoment::kEnd, KindOf(tensors.kind), tensors.bytes);
      return StartCopies(group, CopyDirection::kIn);
    case ActionKind::kSwapInEnd:
      book.where = Where::kThere;
      WaitForCopies(book);
      return absl::OkStatus();
    case ActionKind::kRecompute:
      Recompute(group, writer_.CostOf(writer_.action().stage).forward_workspace);
      return absl::OkStatus();
    default:
      return absl::InternalError("an action on a tensor group of unknown kind");
  }
}

absl::Status GroupResidence::Forward(int layer, int task, Bytes stash) {
  const int id = GroupAt(layer);
  if (id == kNone) {
    writer_.Change(task, TaskMoment::kBegin, MemoryKind::kActivations, stash);
    return absl::OkStatus();
  }
  const StageGroup& group = Groups()[id];
  Book& book = BookOf(id);
  if (book.where == Where::kToDrop) {
    const Bytes kept = layer == group.first ? group.group->input : Bytes(0);
    writer_.Change(task, TaskMoment::kBegin, MemoryKind::kActivations, kept);
    if (layer == group.last) book.where = Where::kDropped;
    return absl::OkStatus();
  }
  writer_.Change(task, TaskMoment::kBegin, MemoryKind::kActivations, stash);
  if (layer != group.last) return absl::OkStatus();
  book.made = true;
  if (book.where != Where::kToSwap) return absl::OkStatus();
  book.where = Where::kThere;
  // The copy is the SWAP_OUT's, which has waited for the layer.
  const int here = writer_.place();
  writer_.BeginAction(book.swap_out);
  const absl::Status started = StartCopies(id, CopyDirection::kOut);
  writer_.BeginAction(here);
  return started;
}

bool GroupResidence::StopsBackward(int layer) {
  const int group = GroupAt(layer);
  if (group == kNone || layer != Groups()[group].last) return false;
  const Where where = BookOf(group).where;
  return where == Where::kDropped || where == Where::kArriving;
}

void GroupResidence::PrepareBackward(int layer) {
  const int group = GroupAt(layer);
  Book& book = BookOf(group);
  if (book.where == Where::kArriving) {
    WaitForCopies(book);
    book.where = Where::kThere;
    return;
  }
  // The backward holds its own workspace already, which it does not use meanwhile.
  const StageCost& cost = writer_.CostOf(writer_.action().stage);
  Recompute(group, std::max(cost.forward_workspace - cost.backward_workspace, Bytes(0)));
}

void GroupResidence::Recompute(int group, Bytes workspace) {
  const TensorGroup& tensors = *Groups()[group].group;
  const int task = writer_.AddRecompute(GroupId(group), tensors.recompute);
  // Less than the input where another group saves the rest of it.
  const Bytes more = tensors.bytes - tensors.input;
  writer_.Change(task, more > Bytes(0) ? TaskMoment::kBegin : TaskMoment::kEnd,
                 MemoryKind::kActivations, more);
  writer_.Hold(task, task, MemoryKind::kWorkspace, workspace);
  BookOf(group).where = Where::kThere;
}

absl::Status GroupResidence::StartCopies(int id, CopyDirection direction) {
  const StageGroup& group = Groups()[id];
  Book& book = BookOf(id);
  book.first_copy = kNone;
  book.copies = 0;
  const auto add = [&](const Route& route, int account, Bytes bytes) {
    const int copy = writer_.AddCopy(TaskRole::kSwap, route, bytes);
    if (book.copies++ == 0) book.first_copy = copy;
    const bool out = direction == CopyDirection::kOut;
    writer_.ChangeAt(account, copy, out ? TaskMoment::kBegin : TaskMoment::kEnd,
                     KindOf(group.group->kind), out ? bytes : bytes * -1);
  };
  StepResources& resources = writer_.resources();
  const int worker = writer_.account();
  if (group.choice->placement == Placement::kHostSwap) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, resources.HostCopy(worker, direction));
    add(route, accounts_.host(), group.group->bytes);
  } else if (group.choice->placement == Placement::kNvmeSwap) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, resources.DriveCopy(worker, direction));
    add(route, accounts_.OfDrive(resources.DriveOf(worker)), group.group->bytes);
  }
  for (const Stripe& stripe : group.choice->stripes) {
    SIPHON_ASSIGN_OR_RETURN(const Route route,
                            resources.PeerCopy(worker, stripe.lender, direction));
    add(route, accounts_.OfDevice(stripe.lender), stripe.bytes);
  }
  return absl::OkStatus();
}

void GroupResidence::WaitForCopies(const Book& book) {
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  for (int copy = book.first_copy; copy < book.first_copy + book.copies; ++copy) {
    writer_.Wait(end, copy);
  }
}

}  // namespace siphon
