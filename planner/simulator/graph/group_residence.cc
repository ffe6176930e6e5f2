#include "planner/simulator/graph/group_residence.h"

#include <algorithm>
#include <cstddef>
#include <span>

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

absl::Status GroupResidence::Move() {
  const int group = writer_.action().group.value;
  const TensorGroup& tensors = *Groups()[group].group;
  const bool activations = tensors.kind == GroupKind::kActivations;
  const bool version = tensors.kind == GroupKind::kWeightVersions;
  const MemoryKind kind = MemoryKindOf(tensors.kind);
  Book& book = groups_.Of(group);
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
      if (book.made || !activations) return groups_.StartCopies(group, CopyDirection::kOut);
      book.where = Where::kToSwap;
      return absl::OkStatus();
    case ActionKind::kSwapOutEnd:
      if (book.where == Where::kToSwap && activations) {
        book.under_forward = true;
        return absl::OkStatus();
      }
      book.where = Where::kAway;
      groups_.WaitForCopies(book);
      // A version that has been part of the parameters frees nothing.
      if (book.streamed || (version && !book.made)) return absl::OkStatus();
      if (version) book.made = false;
      writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes * -1);
      return absl::OkStatus();
    case ActionKind::kSwapIn:
      book.where = Where::kArriving;
      if (version) book.made = true;
      writer_.Change(writer_.last(), TaskMoment::kEnd, kind, tensors.bytes);
      return groups_.StartCopies(group, CopyDirection::kIn);
    case ActionKind::kSwapInEnd:
      groups_.Arrive(group);
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
  if (kind == GroupKind::kWeightVersions && !groups_.GoesByStash()) return false;
  const bool forward = writer_.action().kind == ActionKind::kForward;
  const StageGroup& placed = Groups()[group];
  if (layer != (forward ? placed.first : placed.last)) return false;
  return groups_.Of(group).where == Where::kArriving;
}

absl::Status GroupResidence::Announce(Where where, Book& book) {
  book.coming = book.where == Where::kArriving;
  book.where = where;
  return absl::OkStatus();
}

void GroupResidence::BeginCompute() {
  streams_.clear();
  next_stream_ = 0;
  leaving_.clear();
  gone_ = 0;
  most_leaving_ = 0;
  const bool forward = writer_.action().kind == ActionKind::kForward;
  if (forward) {
    for (const int group : Groups().Of(GroupKind::kActivations)) {
      const Book& book = groups_.Of(group);
      if (book.where == Where::kToSwap && !book.under_forward) ++most_leaving_;
    }
  }
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (!Groups().MayMiss(kind)) continue;
    for (const int group : Groups().Of(kind)) {
      if (!ComesInUnder(kind, group)) continue;
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

// The action has it only while it is at its layers; or, of activations, from there on.
bool GroupResidence::ComesInUnder(GroupKind kind, int group) {
  if (kind == GroupKind::kWeightVersions) return false;
  const Where where = groups_.Of(group).where;
  if (kind == GroupKind::kActivations) return where == Where::kAway;
  return where == Where::kToDrop || where == Where::kToSwap;
}

int GroupResidence::StreamBuffers() const {
  return writer_.input().memory.stages[writer_.action().stage.value].stream_buffers;
}

bool GroupResidence::BeginsStream(int layer) const {
  return next_stream_ < streams_.size() && streams_[next_stream_].layer == layer;
}

absl::Status GroupResidence::StartStream(const Stream& stream) {
  for (const int group : stream.groups) {
    Book& book = groups_.Of(group);
    if (book.coming) continue;
    const TensorGroup& tensors = *Groups()[group].group;
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKindOf(tensors.kind), tensors.bytes);
    SIPHON_RETURN_IF_ERROR(groups_.StartCopies(group, CopyDirection::kIn));
    book.coming = true;
  }
  return absl::OkStatus();
}

void GroupResidence::MakeRoomFor(size_t stream) {
  const auto buffers = static_cast<size_t>(StreamBuffers());
  if (stream < buffers) return;
  for (const int group : streams_[stream - buffers].groups) {
    if (groups_.Of(group).streamed) groups_.WaitForCopies(groups_.Of(group));
  }
}

// With three buffers: what has just been used and may still be on its way out, what is in use, and
// what comes in next.
absl::Status GroupResidence::PrepareStream(int layer) {
  if (!BeginsStream(layer)) {
    const bool ahead = next_stream_ == 0 && !streams_.empty();
    return ahead ? StartStream(streams_.front()) : absl::OkStatus();
  }
  const bool ahead = StreamBuffers() > 1;
  if (!ahead) MakeRoomFor(next_stream_);
  SIPHON_RETURN_IF_ERROR(StartStream(streams_[next_stream_]));
  for (const int group : streams_[next_stream_].groups) {
    Book& book = groups_.Of(group);
    if (book.where != Where::kAway) {
      groups_.WaitForCopies(book);
      continue;
    }
    book.coming = false;
    groups_.Arrive(group);
  }
  ++next_stream_;
  if (next_stream_ == streams_.size() || !ahead) return absl::OkStatus();
  MakeRoomFor(next_stream_);
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
  Book& book = groups_.Of(group);
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
  return groups_.StartAnnouncedCopies(group);
}

bool GroupResidence::Stops(int layer) {
  const bool forward = writer_.action().kind == ActionKind::kForward;
  if (streams_.empty() && !(forward ? Groups().Begins(layer) : Groups().Ends(layer))) return false;
  if (BeginsStream(layer)) return true;
  if (next_stream_ == 0 && !streams_.empty()) {
    const std::vector<int>& first = streams_.front().groups;
    for (const int group : first) {
      if (!groups_.Of(group).coming) return true;
    }
  }
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (!Groups().MayMiss(kind)) continue;
    if (IsArriving(layer, kind)) return true;
    if (kind != GroupKind::kActivations) continue;
    const int group = Groups().At(layer, kind);
    if (group == kNone || layer != Groups()[group].last) continue;
    if (groups_.Of(group).where == Where::kDropped) return true;
  }
  return false;
}

absl::Status GroupResidence::Prepare(int layer, Bytes workspace) {
  SIPHON_RETURN_IF_ERROR(PrepareStream(layer));
  for (const GroupKind kind : NeedsOf(writer_.action().kind)) {
    if (!Groups().MayMiss(kind)) continue;
    const int group = Groups().At(layer, kind);
    if (IsArriving(layer, kind)) groups_.Arrive(group);
    if (kind != GroupKind::kActivations || group == kNone || layer != Groups()[group].last)
      continue;
    if (groups_.Of(group).where != Where::kDropped) continue;
    Recompute(group, std::max(RemakeWorkspace(group) - workspace, Bytes(0)));
  }
  return absl::OkStatus();
}

void GroupResidence::PrepareStep(const StageRange& layers) {
  for (int group = 0; group < Groups().size(); ++group) {
    const TensorGroup& tensors = *Groups()[group].group;
    if (IsPassing(tensors.kind) || !Overlap(tensors.layers, layers)) continue;
    if (groups_.Of(group).where == Where::kArriving) groups_.Arrive(group);
  }
}

void GroupResidence::StashWeights(int update) {
  if (!groups_.GoesByStash()) return;
  Bytes bytes = writer_.CostOf(writer_.action().stage).parameters;
  for (int group = 0; group < Groups().size(); ++group) {
    const auto& [tensors, choice, first, last] = Groups()[group];
    if (tensors->kind != GroupKind::kWeightVersions || !IsSwap(choice->placement)) continue;
    Book& book = groups_.Of(group);
    book.made = book.where != Where::kAway;
    if (!book.made) bytes -= tensors->bytes;
  }
  writer_.Change(update, TaskMoment::kBegin, MemoryKind::kWeightVersions, bytes);
}

void GroupResidence::ReleaseWeights() {
  if (!groups_.GoesByStash()) return;
  const WeightStash& stash = groups_.stash();
  if (stash.last_use != writer_.place()) return;
  writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kWeightVersions,
                 writer_.CostOf(stash.stage).parameters * -1);
}

Bytes GroupResidence::OnHost(GroupKind kind, const StageRange& layers) {
  Bytes bytes;
  for (int group = 0; group < Groups().size(); ++group) {
    const auto& [tensors, choice, first, last] = Groups()[group];
    if (tensors->kind != kind || choice->placement != Placement::kHostSwap ||
        groups_.Of(group).where != Where::kAway || !Overlap(tensors->layers, layers)) {
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
  Book& book = groups_.Of(id);
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
  SIPHON_RETURN_IF_ERROR(groups_.StartAnnouncedCopies(id));
  leaving_.push_back(id);
  const size_t there = std::max<size_t>(most_leaving_, 1);
  SendOn(leaving_.size() - std::min(leaving_.size(), there));
  return absl::OkStatus();
}

void GroupResidence::SendOn(size_t most) {
  for (; gone_ < most; ++gone_) {
    Book& book = groups_.Of(leaving_[gone_]);
    if (!book.under_forward) continue;
    book.under_forward = false;
    book.where = Where::kAway;
    groups_.WaitForCopies(book);
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kActivations,
                   Groups()[leaving_[gone_]].group->bytes * -1);
  }
}

Bytes GroupResidence::RemakeWorkspace(int group) {
  return std::max(writer_.CostOf(writer_.action().stage).forward_workspace,
                  Groups()[group].group->workspace);
}

void GroupResidence::Recompute(int group, Bytes workspace) {
  const TensorGroup& tensors = *Groups()[group].group;
  for (int layer = Groups()[group].first; layer <= Groups()[group].last; ++layer) {
    const int parameters = Groups().At(layer, GroupKind::kParameters);
    if (parameters != kNone && groups_.Of(parameters).where == Where::kArriving)
      groups_.Arrive(parameters);
    const int version = Groups().At(layer, GroupKind::kWeightVersions);
    if (version == kNone || !groups_.GoesByStash()) continue;
    if (groups_.Of(version).where == Where::kArriving) groups_.Arrive(version);
  }
  const int task = writer_.AddRecompute(GroupId(group), tensors.recompute);
  // Less than the input where another group saves the rest of it.
  const Bytes more = tensors.bytes - tensors.input;
  writer_.Change(task, more > Bytes(0) ? TaskMoment::kBegin : TaskMoment::kEnd,
                 MemoryKind::kActivations, more);
  writer_.Hold(task, task, MemoryKind::kWorkspace, workspace);
  groups_.Of(group).where = Where::kThere;
}

}  // namespace siphon
