#include "pipeline/state_swaps.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "pipeline/await_copy.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

ParkedGroup Parked(std::pair<StageId, GroupId> place) {
  return {place.first, place.second, kNoMicrobatch};
}

GroupKind KindOf(StateTensor::Kind kind) {
  return kind == StateTensor::Kind::kParameter ? GroupKind::kParameters
                                               : GroupKind::kOptimizerState;
}

// Whether the plan has the group away at times.
bool Moves(const StagePlan& stage, const PlannedGroup& planned) {
  if (IsPassing(planned.group.kind) || !IsSwap(planned.choice.placement)) return false;
  return planned.group.kind != GroupKind::kOptimizerState || !StepsOnHost(stage, planned);
}

}  // namespace

std::vector<StateGroup> StateGroupsAway(const MemoryPlan& plan, const HomeGroups& home,
                                        StageId stage) {
  std::vector<StateGroup> away;
  if (plan.stages.empty()) return away;
  const StagePlan& planned = plan.stages[static_cast<size_t>(stage.value)];
  for (size_t id = 0; id < planned.groups.size(); ++id) {
    const PlannedGroup& each = planned.groups[id];
    if (!Moves(planned, each) || home.contains({stage, GroupId(static_cast<int>(id))})) continue;
    away.push_back({each.group.kind, each.group.layers});
  }
  for (const StageRange& layers : LayersSteppedOnHost(planned)) {
    away.push_back({GroupKind::kOptimizerState, layers});
  }
  return away;
}

StateSwaps::StateSwaps(const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
                       SwapEngine* engine)
    : stages_(stages), engine_(engine) {
  for (const auto& [stage, compute] : stages_) {
    if (layout.memory.stages.empty()) continue;
    const StagePlan& planned = layout.memory.stages[static_cast<size_t>(stage.value)];
    stream_buffers_[stage] = planned.stream_buffers;
    for (size_t id = 0; id < planned.groups.size(); ++id) {
      const auto& [group, choice] = planned.groups[id];
      if (!Moves(planned, planned.groups[id])) continue;
      const Place place(stage, GroupId(static_cast<int>(id)));
      Book& book = books_[place];
      book.group = {group.kind, group.layers};
      book.home = layout.home.contains(place);
      if (book.home) book.where = Where::kThere;
    }
  }
}

absl::Status StateSwaps::SendAway() {
  if (books_.empty()) return absl::OkStatus();
  if (engine_ == nullptr) {
    return absl::FailedPreconditionError(
        "the plan sends training state away, and this worker was given no place to park it");
  }
  for (auto& [place, book] : books_) {
    if (book.home) continue;
    StateMemory& memory = stages_.at(place.first)->state_memory();
    SIPHON_RETURN_IF_ERROR(memory.Refill(book.group).status());
    SIPHON_RETURN_IF_ERROR(memory.Initialise(book.group));
    SIPHON_RETURN_IF_ERROR(StartOut(place, book));
    SIPHON_RETURN_IF_ERROR(FinishOut(place, book));
  }
  engine_->TakeBytesOut();  // are of no step
  return absl::OkStatus();
}

absl::Status StateSwaps::StartOut(Place place, Book& book) {
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors,
                          stages_.at(place.first)->state_memory().Tensors(book.group));
  book.where = Where::kLeaving;
  return engine_->StartOut(Parked(place), {tensors.begin(), tensors.end()});
}

absl::Status StateSwaps::FinishOut(Place place, Book& book) {
  SIPHON_RETURN_IF_ERROR(AwaitOut(*engine_, Parked(place), recorder_));
  book.where = Where::kAway;
  return stages_.at(place.first)->state_memory().Free(book.group);
}

absl::Status StateSwaps::StartIn(Place place, Book& book) {
  SIPHON_ASSIGN_OR_RETURN(TensorSpans tensors,
                          stages_.at(place.first)->state_memory().Refill(book.group));
  book.where = Where::kComing;
  return engine_->StartIn(Parked(place), std::move(tensors));
}

absl::Status StateSwaps::FinishIn(Place place, Book& book) {
  SIPHON_RETURN_IF_ERROR(AwaitIn(*engine_, Parked(place), recorder_));
  book.where = Where::kThere;
  return absl::OkStatus();
}

absl::Status StateSwaps::DropNow(Place place, Book& book) {
  SIPHON_RETURN_IF_ERROR(engine_->Drop(Parked(place)));
  book.where = Where::kAway;
  return stages_.at(place.first)->state_memory().Free(book.group);
}

absl::Status StateSwaps::Part(Place place, ActionKind kind, Move move) {
  recorder_->BeginPart(
      {.stage = place.first, .kind = kind, .microbatch = kNoMicrobatch, .group = place.second});
  SIPHON_RETURN_IF_ERROR((this->*move)(place, books_.at(place)));
  recorder_->EndPart();
  return absl::OkStatus();
}

absl::Status StateSwaps::BadState(const Action& action, const Book& book) {
  static constexpr absl::string_view kTexts[] = {"away", "on their way in", "there",
                                                 "on their way out"};
  return absl::FailedPreconditionError(
      absl::StrCat(ToString(action), ": the ", GroupKindName(book.group.kind), " of layers [",
                   book.group.layers.begin, ", ", book.group.layers.end, ") are ",
                   kTexts[static_cast<size_t>(book.where)]));
}

absl::Status StateSwaps::Run(const Action& action) {
  const Place place(action.stage, action.group);
  const auto found = books_.find(place);
  if (found == books_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(action), ": the plan does not send this group away"));
  }
  Book& book = found->second;
  switch (action.kind) {
    case ActionKind::kSwapIn:
      return book.where == Where::kAway ? StartIn(place, book) : BadState(action, book);
    case ActionKind::kSwapInEnd:
      if (book.where == Where::kComing) return FinishIn(place, book);
      return book.where == Where::kThere ? absl::OkStatus() : BadState(action, book);
    case ActionKind::kSwapOut:
      return Go(action, book, &StateSwaps::StartOut);
    case ActionKind::kSwapOutEnd:
      if (book.where == Where::kLeaving) return FinishOut(place, book);
      return book.where == Where::kAway ? absl::OkStatus() : BadState(action, book);
    case ActionKind::kDrop:
      return Go(action, book, &StateSwaps::DropNow);
    default:
      return absl::InternalError("not a move of training state");
  }
}

absl::Status StateSwaps::Go(const Action& action, Book& book, Move move) {
  if (book.where == Where::kThere) return (this->*move)({action.stage, action.group}, book);
  if (book.where == Where::kLeaving) return BadState(action, book);
  book.streams = true;
  return absl::OkStatus();
}

void StateSwaps::BeginPass(const Action& action) {
  pass_ = action;
  streams_.clear();
  next_stream_ = 0;
  const bool forward = action.kind == ActionKind::kForward;
  for (const auto& [place, book] : books_) {
    if (place.first != action.stage || !book.streams || !Uses(book.group.kind)) continue;
    const int layer = forward ? book.group.layers.begin : book.group.layers.end - 1;
    const auto same = [layer](const Stream& stream) { return stream.layer == layer; };
    const auto known = std::find_if(streams_.begin(), streams_.end(), same);
    Stream& stream = known != streams_.end() ? *known : streams_.emplace_back(Stream{layer, {}});
    stream.groups.push_back(place.second);
  }
  std::sort(streams_.begin(), streams_.end(), [forward](const Stream& a, const Stream& b) {
    return forward ? a.layer < b.layer : a.layer > b.layer;
  });
}

absl::Status StateSwaps::StartStream(const Stream& stream) {
  for (const GroupId group : stream.groups) {
    const Place place(pass_.stage, group);
    if (books_.at(place).where != Where::kAway) continue;
    SIPHON_RETURN_IF_ERROR(Part(place, ActionKind::kSwapIn, &StateSwaps::StartIn));
  }
  return absl::OkStatus();
}

absl::Status StateSwaps::FinishStream(const Stream& stream, Where moving) {
  for (const GroupId group : stream.groups) {
    const Place place(pass_.stage, group);
    if (books_.at(place).where != moving) continue;
    SIPHON_RETURN_IF_ERROR(moving == Where::kComing
                               ? Part(place, ActionKind::kSwapInEnd, &StateSwaps::FinishIn)
                               : Part(place, ActionKind::kSwapOutEnd, &StateSwaps::FinishOut));
  }
  return absl::OkStatus();
}

absl::Status StateSwaps::MakeRoomFor(size_t stream) {
  const auto buffers = static_cast<size_t>(stream_buffers_.at(pass_.stage));
  return stream < buffers ? absl::OkStatus()
                          : FinishStream(streams_[stream - buffers], Where::kLeaving);
}

// With three buffers: what has just been used and may still be on its way out, what is in use, and
// what comes in next.
absl::Status StateSwaps::PrepareStream(int layer) {
  const bool begins = next_stream_ < streams_.size() && streams_[next_stream_].layer == layer;
  if (!begins) {
    const bool ahead = next_stream_ == 0 && !streams_.empty();
    return ahead ? StartStream(streams_.front()) : absl::OkStatus();
  }
  const bool ahead = stream_buffers_.at(pass_.stage) > 1;
  if (!ahead) SIPHON_RETURN_IF_ERROR(MakeRoomFor(next_stream_));
  SIPHON_RETURN_IF_ERROR(StartStream(streams_[next_stream_]));
  ++next_stream_;
  // What comes next begins when that is there, and there is room for it.
  SIPHON_RETURN_IF_ERROR(FinishStream(streams_[next_stream_ - 1], Where::kComing));
  if (next_stream_ == streams_.size() || !ahead) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(MakeRoomFor(next_stream_));
  return StartStream(streams_[next_stream_]);
}

template <typename Wanted>
absl::Status StateSwaps::Arrive(StageId stage, StageRange layers, const Wanted& wanted) {
  for (const auto& [place, book] : books_) {
    if (place.first != stage || book.where != Where::kComing || !wanted(book.group.kind)) continue;
    if (!Overlap(book.group.layers, layers)) continue;
    SIPHON_RETURN_IF_ERROR(Part(place, ActionKind::kSwapInEnd, &StateSwaps::FinishIn));
  }
  return absl::OkStatus();
}

absl::Status StateSwaps::Enter(StageId stage, int layer) {
  if (books_.empty()) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(PrepareStream(layer));
  return Arrive(stage, {layer, layer + 1}, [this](GroupKind kind) { return Uses(kind); });
}

absl::Status StateSwaps::Leave(StageId stage, int layer) {
  if (streams_.empty()) return absl::OkStatus();
  const bool forward = pass_.kind == ActionKind::kForward;
  for (auto& [place, book] : books_) {
    if (place.first != stage || !book.streams || !Uses(book.group.kind)) continue;
    const StageRange& layers = book.group.layers;
    if (layer != (forward ? layers.end - 1 : layers.begin)) continue;
    book.streams = false;
    const bool drops = book.group.kind == GroupKind::kParameters;
    SIPHON_RETURN_IF_ERROR(drops ? Part(place, ActionKind::kDrop, &StateSwaps::DropNow)
                                 : Part(place, ActionKind::kSwapOut, &StateSwaps::StartOut));
  }
  return absl::OkStatus();
}

absl::Status StateSwaps::NeedParameters(StageId stage, StageRange layers) {
  return Arrive(stage, layers, [](GroupKind kind) { return kind == GroupKind::kParameters; });
}

absl::Status StateSwaps::NeedForStep(StageId stage, StageRange layers) {
  return Arrive(stage, layers, [](GroupKind) { return true; });
}

absl::Status StateSwaps::EndStep() {
  recorder_ = nullptr;
  for (const auto& [place, book] : books_) {
    const Where wanted = book.home ? Where::kThere : Where::kAway;
    if (book.where == wanted && !book.streams) continue;
    return absl::InternalError(absl::StrCat(
        "left over at the end of the step: stage ", place.first.value, ", group ",
        place.second.value, ", which is to be ", book.home ? "there" : "away", " between steps"));
  }
  return absl::OkStatus();
}

std::optional<StateSwaps::Place> StateSwaps::OpenedAt(StageId stage,
                                                      const StateTensor& tensor) const {
  for (const auto& [place, book] : books_) {
    if (place.first != stage || book.group.kind != KindOf(tensor.kind)) continue;
    if (Overlap(book.group.layers, {tensor.layer, tensor.layer + 1})) return place;
  }
  return std::nullopt;
}

absl::StatusOr<absl::Span<std::byte>> StateSwaps::Open(StageId stage, size_t index, Access access) {
  const auto tensor = [&] { return stages_.at(stage)->State()[index]; };
  const StateTensor now = tensor();
  const std::optional<Place> place = OpenedAt(stage, now);
  const bool is_open = open_.has_value() && place == open_;
  if (!is_open && now.bytes.size() == static_cast<size_t>(SizeOf(now.spec).value)) return now.bytes;
  if (!is_open) {
    SIPHON_RETURN_IF_ERROR(Close());
    SIPHON_CHECK(place.has_value(), "only what is in a group is away");
    Book& book = books_.at(*place);
    SIPHON_RETURN_IF_ERROR(StartIn(*place, book));
    SIPHON_RETURN_IF_ERROR(FinishIn(*place, book));
    open_ = place;
    access_ = Access::kRead;
  }
  if (access == Access::kWrite) access_ = access;
  return tensor().bytes;
}

absl::Status StateSwaps::Close() {
  if (!open_.has_value()) return absl::OkStatus();
  const Place place = *open_;
  open_.reset();
  Book& book = books_.at(place);
  if (access_ == Access::kRead) return DropNow(place, book);
  SIPHON_RETURN_IF_ERROR(StartOut(place, book));
  SIPHON_RETURN_IF_ERROR(FinishOut(place, book));
  engine_->TakeBytesOut();
  return absl::OkStatus();
}

}  // namespace siphon
