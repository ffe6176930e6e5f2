#include "planner/simulator/group_residence.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "planner/status.h"

namespace siphon {
namespace {

// Of which kinds such an action needs what is on its way in, in the order in which it waits.
std::span<const GroupKind> NeedsOf(ActionKind kind) {
  static constexpr GroupKind kKinds[] = {GroupKind::kGradients, GroupKind::kParameters,
                                         GroupKind::kActivations};
  const std::span<const GroupKind> kinds(kKinds);
  switch (kind) {
    case ActionKind::kForward:
      return kinds.subspan(1, 1);
    case ActionKind::kBackward:
      return kinds;
    case ActionKind::kBackwardInput:
      return kinds.subspan(1);
    case ActionKind::kBackwardWeight:
      return kinds.first(2);
    default:
      return {};
  }
}

bool Overlap(const StageRange& a, const StageRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace

GroupResidence::GroupResidence(StepWriter& writer)
    : writer_(writer), stages_(GroupsOfStages(writer.input())), accounts_(writer.input()) {
  const Schedule& schedule = writer.input().schedule;
  books_.resize(static_cast<size_t>(schedule.replicas) * stages_.size());
  for (size_t row = 0; row < books_.size(); ++row) {
    const StageGroups& groups = stages_[row % stages_.size()];
    books_[row].resize(static_cast<size_t>(groups.size()) *
                       static_cast<size_t>(schedule.microbatches));
    for (int group = 0; group < groups.size(); ++group) {
      const bool away = groups[group].group->kind != GroupKind::kActivations &&
                        groups[group].choice->placement != Placement::kKeep;
      if (away) books_[row][group].where = Where::kAway;
    }
  }
}

GroupResidence::Book& GroupResidence::BookOf(int group) {
  const Action& action = writer_.action();
  const size_t row = static_cast<size_t>(writer_.replica()) * stages_.size() + action.stage.value;
  const bool activations = Groups()[group].group->kind == GroupKind::kActivations;
  const size_t microbatch = activations ? static_cast<size_t>(action.microbatch.value) : 0;
  return books_[row][microbatch * static_cast<size_t>(Groups().size()) + group];
}

absl::Status GroupResidence::Move() {
  const int group = writer_.action().group.value;
  const TensorGroup& tensors = *Groups()[group].group;
  const bool activations = tensors.kind == GroupKind::kActivations;
  const MemoryKind kind = MemoryKindOf(tensors.kind);
  Book& book = BookOf(group);
  switch (writer_.action().kind) {
    case ActionKind::kDrop:
      book.where = activations ? Where::kToDrop : Where::kAway;
      if (!activations) writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes * -1);
      return absl::OkStatus();
    case ActionKind::kSwapOut:
      book.swap_out = writer_.place();
      if (book.made || !activations) return StartCopies(group, CopyDirection::kOut);
      book.where = Where::kToSwap;
      return absl::OkStatus();
    case ActionKind::kSwapOutEnd:
      book.where = Where::kAway;
      WaitForCopies(book);
      writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes * -1);
      return absl::OkStatus();
    case ActionKind::kSwapIn:
      book.where = Where::kArriving;
      writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes);
      return StartCopies(group, CopyDirection::kIn);
    case ActionKind::kSwapInEnd:
      Arrive(group);
      return absl::OkStatus();
    case ActionKind::kRecompute:
      Recompute(group, writer_.CostOf(writer_.action().stage).forward_workspace);
      return absl::OkStatus();
    default:
      return absl::InternalError("an action on a tensor group of unknown kind");
  }
}

bool GroupResidence::IsArriving(int layer, GroupKind kind) {
  const int group = Groups().At(layer, kind);
  if (group == kNone) return false;
  const bool forward = writer_.action().kind == ActionKind::kForward;
  const StageGroup& placed = Groups()[group];
  if (layer != (forward ? placed.first : placed.last)) return false;
  return BookOf(group).where == Where::kArriving;
}

bool GroupResidence::Stops(int layer) {
  if (Groups().size() == 0) return false;
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (IsArriving(layer, kind)) return true;
    if (kind != GroupKind::kActivations) continue;
    const int group = Groups().At(layer, kind);
    if (group == kNone || layer != Groups()[group].last) continue;
    if (BookOf(group).where == Where::kDropped) return true;
  }
  return false;
}

void GroupResidence::Prepare(int layer) {
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    const int group = Groups().At(layer, kind);
    if (IsArriving(layer, kind)) Arrive(group);
    if (kind != GroupKind::kActivations || group == kNone || layer != Groups()[group].last)
      continue;
    if (BookOf(group).where != Where::kDropped) continue;
    // The backward holds its own workspace already, which it does not use meanwhile.
    const StageCost& cost = writer_.CostOf(writer_.action().stage);
    Recompute(group, std::max(cost.forward_workspace - cost.backward_workspace, Bytes(0)));
  }
}

void GroupResidence::Arrive(int group) {
  Book& book = BookOf(group);
  book.where = Where::kThere;
  WaitForCopies(book);
}

void GroupResidence::PrepareStep(const StageRange& layers) {
  for (int group = 0; group < Groups().size(); ++group) {
    const TensorGroup& tensors = *Groups()[group].group;
    if (tensors.kind == GroupKind::kActivations || !Overlap(tensors.layers, layers)) continue;
    if (BookOf(group).where == Where::kArriving) Arrive(group);
  }
}

Bytes GroupResidence::OnHost(GroupKind kind, const StageRange& layers) {
  Bytes bytes;
  for (int group = 0; group < Groups().size(); ++group) {
    const auto& [tensors, choice, first, last] = Groups()[group];
    if (tensors->kind != kind || choice->placement != Placement::kHostSwap ||
        BookOf(group).where != Where::kAway || !Overlap(tensors->layers, layers)) {
      continue;
    }
    const int begin = std::max(tensors->layers.begin, layers.begin);
    const int end = std::min(tensors->layers.end, layers.end);
    bytes += PartOf(tensors->bytes, end - begin, last - first + 1);
  }
  return bytes;
}

absl::Status GroupResidence::Forward(int layer, int task, Bytes stash) {
  const int id = Groups().At(layer, GroupKind::kActivations);
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

void GroupResidence::Recompute(int group, Bytes workspace) {
  const TensorGroup& tensors = *Groups()[group].group;
  for (int layer = Groups()[group].first; layer <= Groups()[group].last; ++layer) {
    const int parameters = Groups().At(layer, GroupKind::kParameters);
    if (parameters != kNone && BookOf(parameters).where == Where::kArriving) Arrive(parameters);
  }
  const int task = writer_.AddRecompute(GroupId(group), tensors.recompute);
  // Less than the input where another group saves the rest of it.
  const Bytes more = tensors.bytes - tensors.input;
  writer_.Change(task, more > Bytes(0) ? TaskMoment::kBegin : TaskMoment::kEnd,
                 MemoryKind::kActivations, more);
  writer_.Hold(task, task, MemoryKind::kWorkspace, workspace);
  BookOf(group).where = Where::kThere;
}

absl::Status GroupResidence::StartCopies(int group, CopyDirection direction) {
  const auto& [tensors, choice, first, last] = Groups()[group];
  Book& book = BookOf(group);
  book.first_copy = kNone;
  book.copies = 0;
  StepResources& resources = writer_.resources();
  const int worker = writer_.account();
  if (choice->placement == Placement::kHostSwap) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, resources.HostCopy(worker, direction));
    AddGroupCopy(group, direction, route, accounts_.host(), tensors->bytes);
  } else if (choice->placement == Placement::kNvmeSwap) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, resources.DriveCopy(worker, direction));
    AddGroupCopy(group, direction, route, accounts_.OfDriveOf(worker), tensors->bytes);
  }
  for (const Stripe& stripe : choice->stripes) {
    SIPHON_ASSIGN_OR_RETURN(const Route route,
                            resources.PeerCopy(worker, stripe.lender, direction));
    AddGroupCopy(group, direction, route, accounts_.OfDevice(stripe.lender), stripe.bytes);
  }
  return absl::OkStatus();
}

void GroupResidence::AddGroupCopy(int group, CopyDirection direction, const Route& route,
                                  int account, Bytes bytes) {
  Book& book = BookOf(group);
  const int copy = writer_.AddCopy(TaskRole::kSwap, route, bytes);
  if (book.copies++ == 0) book.first_copy = copy;
  // Of other kinds the place for what is away stays theirs for the whole step.
  if (Groups()[group].group->kind != GroupKind::kActivations) return;
  const bool out = direction == CopyDirection::kOut;
  writer_.ChangeAt(account, copy, out ? TaskMoment::kBegin : TaskMoment::kEnd,
                   MemoryKind::kActivations, out ? bytes : bytes * -1);
}

void GroupResidence::WaitForCopies(const Book& book) {
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  for (int copy = book.first_copy; copy < book.first_copy + book.copies; ++copy) {
    writer_.Wait(end, copy);
  }
}

}  // namespace siphon
