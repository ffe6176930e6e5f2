#include "pipeline/synthetic/synthetic_state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/synthetic/keyed_bytes.h"
#include "planner/keyed_hash.h"
#include "planner/memory/group_memory.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr std::array<GroupKind, 3> kStateKinds = {GroupKind::kParameters, GroupKind::kGradients,
                                                  GroupKind::kOptimizerState};

size_t IndexOf(GroupKind kind) {
  const auto found = std::find(kStateKinds.begin(), kStateKinds.end(), kind);
  SIPHON_CHECK(found != kStateKinds.end(), "groups of training state are of such a kind");
  return static_cast<size_t>(found - kStateKinds.begin());
}

SyntheticContent ContentOf(GroupKind kind) {
  if (kind == GroupKind::kParameters) return SyntheticContent::kParameters;
  return kind == GroupKind::kGradients ? SyntheticContent::kGradients
                                       : SyntheticContent::kOptimizerState;
}

absl::string_view NameOf(GroupKind kind) {
  return kind == GroupKind::kOptimizerState ? "optimizer state" : GroupKindName(kind);
}

uint64_t KeyOf(GroupKind kind, uint64_t history) {
  return KeyedHash(RandomPurpose::kSyntheticData,
                   {static_cast<uint64_t>(ContentOf(kind)), history});
}

bool IsIn(const std::vector<StateGroup>& groups, GroupKind kind, int layer) {
  return std::any_of(groups.begin(), groups.end(), [&](const StateGroup& group) {
    return group.kind == kind && Contains(group.layers, layer);
  });
}

}  // namespace

absl::StatusOr<SyntheticState> SyntheticState::Make(const ModelProfile& profile,
                                                    const StageRange& stage, MemoryLedger* ledger,
                                                    const std::vector<StateGroup>& away) {
  SyntheticState state(&profile, stage, ledger);
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    state.layers_.emplace_back().history =
        SyntheticKey(SyntheticContent::kParameters, {.layer = layer});
    for (const GroupKind kind : kStateKinds) {
      if (IsIn(away, kind, layer)) continue;
      SIPHON_RETURN_IF_ERROR(state.Take(layer, kind));
      state.Fill(layer, kind);
    }
  }
  return state;
}

Bytes SyntheticState::SizeOf(int layer, GroupKind kind) const {
  const LayerProfile& sizes = profile_->layers[layer];
  if (kind == GroupKind::kParameters) return sizes.parameters;
  return kind == GroupKind::kGradients ? sizes.gradients : sizes.optimizer_state;
}

BookedBlock& SyntheticState::BlockOf(int layer, GroupKind kind) {
  return At(layer).blocks[IndexOf(kind)];
}

absl::Status SyntheticState::Take(int layer, GroupKind kind) {
  absl::StatusOr<BookedBlock> taken =
      BookedBlock::Take(ledger_, SizeOf(layer, kind), MemoryKindOf(kind));
  if (!taken.ok()) {
    return Annotate(taken.status(), absl::StrCat("layer ", profile_->layers[layer].name));
  }
  BlockOf(layer, kind) = *std::move(taken);
  return absl::OkStatus();
}

absl::Span<std::byte> SyntheticState::BytesAt(int layer, GroupKind kind) const {
  const LayerState& state = layers_[static_cast<size_t>(layer - stage_.begin)];
  const bool on_host = kind == GroupKind::kOptimizerState && !state.host_state.empty();
  return on_host ? state.host_state : state.blocks[IndexOf(kind)].bytes();
}

void SyntheticState::Fill(int layer, GroupKind kind, absl::Span<std::byte> bytes) {
  FillKeyed(bytes, KeyOf(kind, At(layer).history));
}

absl::Status SyntheticState::CheckThere(int layer, GroupKind kind) const {
  if (BytesAt(layer, kind).size() == static_cast<size_t>(SizeOf(layer, kind).value)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the ", NameOf(kind), " of layer ", profile_->layers[layer].name, ": needed while away"));
}

absl::Status SyntheticState::CheckThere(int layer, bool gradients) const {
  SIPHON_RETURN_IF_ERROR(CheckThere(layer, GroupKind::kParameters));
  return gradients ? CheckThere(layer, GroupKind::kGradients) : absl::OkStatus();
}

absl::Status SyntheticState::CheckBytes(int layer, GroupKind kind,
                                        absl::Span<const std::byte> bytes) const {
  const LayerState& state = layers_[static_cast<size_t>(layer - stage_.begin)];
  const std::optional<size_t> differs = FirstDifference(bytes, KeyOf(kind, state.history));
  if (!differs.has_value()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(NameOf(kind), " of layer ", profile_->layers[layer].name,
                                          ": byte ", *differs, " of ", bytes.size(),
                                          " is not what it was left as"));
}

void SyntheticState::BeginStep() {
  for (LayerState& state : layers_) {
    state.gradient = 0;
    state.updated = false;
  }
}

void SyntheticState::Accumulate(int layer, int64_t step, MicrobatchId microbatch) {
  At(layer).gradient +=
      SyntheticKey(SyntheticContent::kWeightGradient,
                   {.step = step, .layer = layer, .microbatch = microbatch.value});
}

std::vector<float> SyntheticState::GradientNorms() const {
  std::vector<float> norms;
  for (const LayerState& state : layers_) norms.push_back(SyntheticNumber(state.gradient));
  return norms;
}

void SyntheticState::NoteUpdate(int layer, const UpdateSettings& settings) {
  LayerState& state = At(layer);
  state.history = KeyedHash(RandomPurpose::kSyntheticData,
                            {state.history, state.gradient, static_cast<uint64_t>(settings.update),
                             std::bit_cast<uint64_t>(settings.learning_rate),
                             std::bit_cast<uint32_t>(settings.gradient_scale)});
  state.gradient = 0;
  state.updated = true;
}

absl::Status SyntheticState::Update(int layer, const UpdateSettings& settings) {
  for (const GroupKind kind : kStateKinds) {
    SIPHON_RETURN_IF_ERROR(CheckThere(layer, kind));
    SIPHON_RETURN_IF_ERROR(CheckBytes(layer, kind, BytesAt(layer, kind)));
  }
  NoteUpdate(layer, settings);
  for (const GroupKind kind : kStateKinds) Fill(layer, kind);
  return absl::OkStatus();
}

absl::Status SyntheticState::UpdateOnHost(int layer, const UpdateSettings& settings,
                                          const HostStepMemory& memory) {
  SIPHON_RETURN_IF_ERROR(CheckThere(layer, GroupKind::kOptimizerState));
  const absl::Span<std::byte> state = BytesAt(layer, GroupKind::kOptimizerState);
  SIPHON_RETURN_IF_ERROR(CheckBytes(layer, GroupKind::kParameters, memory.parameter));
  SIPHON_RETURN_IF_ERROR(CheckBytes(layer, GroupKind::kGradients, memory.gradient));
  SIPHON_RETURN_IF_ERROR(CheckBytes(layer, GroupKind::kOptimizerState, state));
  NoteUpdate(layer, settings);
  Fill(layer, GroupKind::kParameters, memory.parameter);
  Fill(layer, GroupKind::kGradients, memory.gradient);
  Fill(layer, GroupKind::kOptimizerState, state);
  // Its sums begin anew, there or on the host.
  Fill(layer, GroupKind::kGradients);
  return absl::OkStatus();
}

std::vector<StepTensor> SyntheticState::StepTensors() {
  std::vector<StepTensor> tensors;
  for (int layer = stage_.begin; layer < stage_.end; ++layer) {
    tensors.push_back({.layer = layer,
                       .moves = true,
                       .stepped = At(layer).updated,
                       .parameter_bytes = SizeOf(layer, GroupKind::kParameters),
                       .gradient_bytes = SizeOf(layer, GroupKind::kGradients),
                       .state_bytes = SizeOf(layer, GroupKind::kOptimizerState),
                       .parameter = BytesAt(layer, GroupKind::kParameters),
                       .gradient = BytesAt(layer, GroupKind::kGradients)});
  }
  return tensors;
}

void SyntheticState::KeepOnHost(const TensorSpans& memory) {
  for (int layer = stage_.begin; layer < stage_.end; ++layer) {
    const absl::Span<std::byte> own = memory[static_cast<size_t>(layer - stage_.begin)];
    if (own.empty()) continue;
    At(layer).host_state = own;
    Fill(layer, GroupKind::kOptimizerState);
  }
}

std::vector<StateTensor> SyntheticState::State() {
  std::vector<StateTensor> tensors;
  for (int layer = stage_.begin; layer < stage_.end; ++layer) {
    const auto add = [&](StateTensor::Kind kind, GroupKind group) {
      tensors.push_back({.name = profile_->layers[layer].name,
                         .kind = kind,
                         .layer = layer,
                         .spec = {.dtype = DType::kUInt8, .shape = {SizeOf(layer, group).value}},
                         .bytes = BytesAt(layer, group)});
    };
    add(StateTensor::Kind::kParameter, GroupKind::kParameters);
    add(StateTensor::Kind::kFirstMoment, GroupKind::kOptimizerState);
  }
  return tensors;
}

absl::StatusOr<TensorSpans> SyntheticState::Tensors(const StateGroup& group) {
  TensorSpans spans;
  for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
    spans.push_back(BytesAt(layer, group.kind));
  }
  return spans;
}

absl::Status SyntheticState::Free(const StateGroup& group) {
  for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
    BlockOf(layer, group.kind) = BookedBlock();
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorSpans> SyntheticState::Refill(const StateGroup& group) {
  for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
    if (!CheckThere(layer, group.kind).ok()) SIPHON_RETURN_IF_ERROR(Take(layer, group.kind));
  }
  return Tensors(group);
}

absl::Status SyntheticState::Initialise(const StateGroup& group) {
  for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
    SIPHON_RETURN_IF_ERROR(CheckThere(layer, group.kind));
    Fill(layer, group.kind);
  }
  return absl::OkStatus();
}

}  // namespace siphon
