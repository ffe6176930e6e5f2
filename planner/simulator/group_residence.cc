#include "planner/simulator/group_residence.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "planner/home_groups.h"
#include "planner/memory/group_memory.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Of which kinds such an action needs what is on its way in, in the order in which it waits.
std::span<const GroupKind> NeedsOf(ActionKind kind) {
  static constexpr GroupKind kKinds[] = {GroupKind::kGradients, GroupKind::kParameters,
                                         GroupKind::kWeightVersions, GroupKind::kActivations};
  const std::span<const GroupKind> kinds(kKinds);
  switch (kind) {
    case ActionKind::kForward:
      return kinds.subspan(1, 2);
    case ActionKind::kBackward:
      return kinds;
    case ActionKind::kBackwardInput:
      return kinds.subspan(1);
    case ActionKind::kBackwardWeight:
      return kinds.first(3);
    default:
      return {};
  }
}

}  // namespace

GroupResidence::GroupResidence(StepWriter& writer)
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

GroupResidence::Book& GroupResidence::BookOf(int group) {
  const Action& action = writer_.action();
  const size_t row = static_cast<size_t>(writer_.replica()) * stages_.size() + action.stage.value;
  const GroupKind kind = Groups()[group].group->kind;
  MicrobatchId copy(0);
  if (IsPassing(kind)) copy = action.microbatch;
  if (kind == GroupKind::kWeightVersions && GoesByStash()) {
    copy = stashes_.stashes[stashes_.At(writer_.place())].update;
  }
  const auto groups = static_cast<size_t>(Groups().size());
  return books_[row][static_cast<size_t>(copy.value) * groups + static_cast<size_t>(group)];
}

void GroupResidence::BeginProgram(WorkerId worker) {
  stashes_ = FindWeightStashes(writer_.input().schedule, worker);
}

absl::Status GroupResidence::Move() {
  const int group = writer_.action().group.value;
  const TensorGroup& tensors = *Groups()[group].group;
  const bool activations = tensors.kind == GroupKind::kActivations;
  const bool version = tensors.kind == GroupKind::kWeightVersions;
  const MemoryKind kind = MemoryKindOf(tensors.kind);
  Book& book = BookOf(group);
  switch (writer_.action().kind) {
    case ActionKind::kDrop:
      if (!activations && book.where != Where::kThere) return Announce(Where::kToDrop, book);
      book.where = activations ? Where::kToDrop : Where::kAway;
      if (!activations) writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes * -1);
      return absl::OkStatus();
    case ActionKind::kSwapOut:
      book.swap_out = writer_.place();
      book.streamed = false;
      if (!activations && book.where != Where::kThere) return Announce(Where::kToSwap, book);
      if (book.made || !activations) return StartCopies(group, CopyDirection::kOut);
      book.where = Where::kToSwap;
      return absl::OkStatus();
    case ActionKind::kSwapOutEnd:
      book.where = Where::kAway;
      WaitForCopies(book);
      // A version that has been part of the parameters frees nothing.
      if (book.streamed || (version && !book.made)) return absl::OkStatus();
      if (version) book.made = false;
      writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes * -1);
      return absl::OkStatus();
    case ActionKind::kSwapIn:
      book.where = Where::kArriving;
      if (version) book.made = true;
      writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes);
      return StartCopies(group, CopyDirection::kIn);
    case ActionKind::kSwapInEnd:
      Arrive(group);
      return absl::OkStatus();
    case ActionKind::kRecompute:
      Recompute(group, RemakeWorkspace(group));
      return absl::OkStatus();
    default:
      return absl::InternalError("an action on a tensor group of unknown kind");
  }
}

bool GroupResidence::IsArriving(int layer, GroupKind kind) {
  const int group = Groups().At(layer, kind);
  if (group == kNone) return false;
  if (kind == GroupKind::kWeightVersions && !GoesByStash()) return false;
  const bool forward = writer_.action().kind == ActionKind::kForward;
  const StageGroup& placed = Groups()[group];
  if (layer != (forward ? placed.first : placed.last)) return false;
  return BookOf(group).where == Where::kArriving;
}

absl::Status GroupResidence::Announce(Where where, Book& book) {
  book.coming = book.where == Where::kArriving;
  book.where = where;
  return absl::OkStatus();
}

void GroupResidence::BeginCompute() {
  streams_.clear();
  next_stream_ = 0;
  const bool forward = writer_.action().kind == ActionKind::kForward;
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (IsPassing(kind)) continue;
    for (const int group : Groups().Of(kind)) {
      const Where where = BookOf(group).where;
      if (where != Where::kToDrop && where != Where::kToSwap) continue;
      const int layer = forward ? Groups()[group].first : Groups()[group].last;
      const auto same = [layer](const Stream& stream) { return stream.layer == layer; };
      const auto found = std::find_if(streams_.begin(), streams_.end(), same);
      Stream& stream = found != streams_.end() ? *found : streams_.emplace_back(Stream{layer, {}});
      stream.groups.push_back(group);
    }
  }
  std::sort(streams_.begin(), streams_.end(), [forward](const Stream& a, const Stream& b) {
    return forward ? a.layer < b.layer : a.layer > b.layer;
  });
}

bool GroupResidence::BeginsStream(int layer) const {
  return next_stream_ < streams_.size() && streams_[next_stream_].layer == layer;
}

absl::Status GroupResidence::StartStream(const Stream& stream) {
  for (const int group : stream.groups) {
    Book& book = BookOf(group);
    if (book.coming) continue;
    const TensorGroup& tensors = *Groups()[group].group;
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKindOf(tensors.kind), tensors.bytes);
    SIPHON_RETURN_IF_ERROR(StartCopies(group, CopyDirection::kIn));
    book.coming = true;
  }
  return absl::OkStatus();
}

// The groups of at most three places are there at once: those that have just been used and may
// still be on their way out, those in use, and those that come in next.
absl::Status GroupResidence::PrepareStream(int layer) {
  if (!BeginsStream(layer)) {
    const bool ahead = next_stream_ == 0 && !streams_.empty();
    return ahead ? StartStream(streams_.front()) : absl::OkStatus();
  }
  SIPHON_RETURN_IF_ERROR(StartStream(streams_[next_stream_]));
  for (const int group : streams_[next_stream_].groups) WaitForCopies(BookOf(group));
  ++next_stream_;
  if (next_stream_ == streams_.size()) return absl::OkStatus();
  if (next_stream_ >= 3) {
    for (const int group : streams_[next_stream_ - 3].groups) {
      if (BookOf(group).streamed) WaitForCopies(BookOf(group));
    }
  }
  return StartStream(streams_[next_stream_]);
}

absl::Status GroupResidence::Leave(int layer) {
  if (streams_.empty()) return absl::OkStatus();
  const bool forward = writer_.action().kind == ActionKind::kForward;
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (IsPassing(kind)) continue;
    const int group = Groups().At(layer, kind);
    if (group == kNone) continue;
    if (layer != (forward ? Groups()[group].last : Groups()[group].first)) continue;
    SIPHON_RETURN_IF_ERROR(LeaveStreamed(group));
  }
  return absl::OkStatus();
}

absl::Status GroupResidence::LeaveStreamed(int group) {
  Book& book = BookOf(group);
  if (!book.coming || (book.where != Where::kToDrop && book.where != Where::kToSwap)) {
    return absl::OkStatus();
  }
  book.coming = false;
  const TensorGroup& tensors = *Groups()[group].group;
  const bool drops = book.where == Where::kToDrop;
  book.where = Where::kAway;
  if (drops) {
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKindOf(tensors.kind),
                   tensors.bytes * -1);
    return absl::OkStatus();
  }
  book.streamed = true;
  const int here = writer_.place();
  writer_.BeginAction(book.swap_out);
  const absl::Status started = StartCopies(group, CopyDirection::kOut);
  writer_.BeginAction(here);
  return started;
}

bool GroupResidence::Stops(int layer) {
  const bool forward = writer_.action().kind == ActionKind::kForward;
  if (streams_.empty() && !(forward ? Groups().Begins(layer) : Groups().Ends(layer))) return false;
  if (BeginsStream(layer)) return true;
  if (next_stream_ == 0 && !streams_.empty()) {
    const std::vector<int>& first = streams_.front().groups;
    for (const int group : first) {
      if (!BookOf(group).coming) return true;
    }
  }
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (IsArriving(layer, kind)) return true;
    if (kind != GroupKind::kActivations) continue;
    const int group = Groups().At(layer, kind);
    if (group == kNone || layer != Groups()[group].last) continue;
    if (BookOf(group).where == Where::kDropped) return true;
  }
  return false;
}

absl::Status GroupResidence::Prepare(int layer, Bytes workspace) {
  SIPHON_RETURN_IF_ERROR(PrepareStream(layer));
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    const int group = Groups().At(layer, kind);
    if (IsArriving(layer, kind)) Arrive(group);
    if (kind != GroupKind::kActivations || group == kNone || layer != Groups()[group].last)
      continue;
    if (BookOf(group).where != Where::kDropped) continue;
    Recompute(group, std::max(RemakeWorkspace(group) - workspace, Bytes(0)));
  }
  return absl::OkStatus();
}

void GroupResidence::Arrive(int group) {
  Book& book = BookOf(group);
  book.where = Where::kThere;
  WaitForCopies(book);
}

void GroupResidence::PrepareStep(const StageRange& layers) {
  for (int group = 0; group < Groups().size(); ++group) {
    const TensorGroup& tensors = *Groups()[group].group;
    if (IsPassing(tensors.kind) || !Overlap(tensors.layers, layers)) continue;
    if (BookOf(group).where == Where::kArriving) Arrive(group);
  }
}

void GroupResidence::StashWeights(int update) {
  if (!GoesByStash()) return;
  Bytes bytes = writer_.CostOf(writer_.action().stage).parameters;
  for (int group = 0; group < Groups().size(); ++group) {
    const auto& [tensors, choice, first, last] = Groups()[group];
    if (tensors->kind != GroupKind::kWeightVersions || !IsSwap(choice->placement)) continue;
    Book& book = BookOf(group);
    book.made = book.where != Where::kAway;
    if (!book.made) bytes -= tensors->bytes;
  }
  writer_.Change(update, TaskMoment::kBegin, MemoryKind::kWeightVersions, bytes);
}

void GroupResidence::ReleaseWeights() {
  if (!GoesByStash()) return;
  const WeightStash& stash = stashes_.stashes[stashes_.At(writer_.place())];
  if (stash.last_use != writer_.place()) return;
  writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kWeightVersions,
                 writer_.CostOf(stash.stage).parameters * -1);
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
    Bytes kept = layer == group.first ? group.group->input : Bytes(0);
    if (group.group->first_tensors > 0) kept += stash - group.group->bytes;
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

Bytes GroupResidence::RemakeWorkspace(int group) const {
  return std::max(writer_.CostOf(writer_.action().stage).forward_workspace,
                  Groups()[group].group->workspace);
}

void GroupResidence::Recompute(int group, Bytes workspace) {
  const TensorGroup& tensors = *Groups()[group].group;
  for (int layer = Groups()[group].first; layer <= Groups()[group].last; ++layer) {
    const int parameters = Groups().At(layer, GroupKind::kParameters);
    if (parameters != kNone && BookOf(parameters).where == Where::kArriving) Arrive(parameters);
    const int version = Groups().At(layer, GroupKind::kWeightVersions);
    if (version == kNone || !GoesByStash()) continue;
    if (BookOf(version).where == Where::kArriving) Arrive(version);
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
    AddGroupCopy(group, direction, route, accounts_.OfHostOf(worker), tensors->bytes);
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
  if (book.streamed && direction == CopyDirection::kOut) {
    if (writer_.input().frees_at_waits) {
      book.owed += bytes;
    } else {
      writer_.Change(copy, TaskMoment::kEnd, MemoryKindOf(Groups()[group].group->kind), bytes * -1);
    }
  }
  // Of other kinds the place for what is away stays theirs for the whole step.
  const GroupKind kind = Groups()[group].group->kind;
  if (!IsPassing(kind)) return;
  const bool out = direction == CopyDirection::kOut;
  writer_.ChangeAt(account, copy, out ? TaskMoment::kBegin : TaskMoment::kEnd,
                   accounts_.IsDevice(account) ? MemoryKind::kLent : MemoryKindOf(kind),
                   out ? bytes : bytes * -1);
}

void GroupResidence::WaitForCopies(Book& book) {
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  for (int copy = book.first_copy; copy < book.first_copy + book.copies; ++copy) {
    writer_.Wait(end, copy);
  }
  if (book.owed == Bytes(0)) return;
  writer_.Change(end, TaskMoment::kEnd, MemoryKind::kGradients,
                 std::exchange(book.owed, Bytes(0)) * -1);
}

}  // namespace siphon
