#include "pipeline/synthetic/synthetic_state.h"

#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/synthetic/keyed_bytes.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

TensorSpec BytesSpec(const BookedBlock& block) {
  return {.dtype = DType::kUInt8, .shape = {block.size().value}};
}

}  // namespace

absl::StatusOr<SyntheticState> SyntheticState::Make(const ModelProfile& profile,
                                                    const StageRange& stage, MemoryLedger* ledger) {
  SyntheticState state(&profile, stage);
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    const LayerProfile& sizes = profile.layers[layer];
    LayerState& made = state.layers_.emplace_back();
    made.history = SyntheticKey(SyntheticContent::kParameters, {.layer = layer});
    const std::array<std::pair<BookedBlock*, std::pair<Bytes, MemoryKind>>, 3> blocks = {
        {{&made.parameters, {sizes.parameters, MemoryKind::kParameters}},
         {&made.gradients, {sizes.gradients, MemoryKind::kGradients}},
         {&made.optimizer_state, {sizes.optimizer_state, MemoryKind::kOptimizer}}}};
    for (const auto& [block, asked] : blocks) {
      absl::StatusOr<BookedBlock> taken = BookedBlock::Take(ledger, asked.first, asked.second);
      if (!taken.ok()) return Annotate(taken.status(), absl::StrCat("layer ", sizes.name));
      *block = *std::move(taken);
    }
    state.Fill(made);
  }
  return state;
}

uint64_t SyntheticState::KeyOf(SyntheticContent content, const LayerState& state) {
  return KeyedHash(RandomPurpose::kSyntheticData, {static_cast<uint64_t>(content), state.history});
}

void SyntheticState::Fill(LayerState& state) {
  FillKeyed(state.parameters.bytes(), KeyOf(SyntheticContent::kParameters, state));
  FillKeyed(state.gradients.bytes(), KeyOf(SyntheticContent::kGradients, state));
  FillKeyed(state.optimizer_state.bytes(), KeyOf(SyntheticContent::kOptimizerState, state));
}

absl::Status SyntheticState::Check(int layer, const LayerState& state) const {
  const std::pair<const BookedBlock*, SyntheticContent> blocks[] = {
      {&state.parameters, SyntheticContent::kParameters},
      {&state.gradients, SyntheticContent::kGradients},
      {&state.optimizer_state, SyntheticContent::kOptimizerState}};
  constexpr absl::string_view kNames[] = {"parameters", "gradients", "optimizer state"};
  for (size_t index = 0; index < std::size(blocks); ++index) {
    const auto& [block, content] = blocks[index];
    const std::optional<size_t> differs = FirstDifference(block->bytes(), KeyOf(content, state));
    if (!differs.has_value()) continue;
    return absl::DataLossError(
        absl::StrCat(kNames[index], " of layer ", profile_->layers[layer].name, ": byte ", *differs,
                     " of ", block->size().value, " is not what it was left as"));
  }
  return absl::OkStatus();
}

void SyntheticState::ClearGradients() {
  for (LayerState& state : layers_) state.gradient = 0;
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

absl::Status SyntheticState::Update(int layer, const UpdateSettings& settings) {
  LayerState& state = At(layer);
  SIPHON_RETURN_IF_ERROR(Check(layer, state));
  state.history = KeyedHash(RandomPurpose::kSyntheticData,
                            {state.history, state.gradient, static_cast<uint64_t>(settings.update),
                             std::bit_cast<uint64_t>(settings.learning_rate),
                             std::bit_cast<uint32_t>(settings.gradient_scale)});
  state.gradient = 0;
  Fill(state);
  return absl::OkStatus();
}

std::vector<StateTensor> SyntheticState::State() {
  std::vector<StateTensor> tensors;
  for (int layer = stage_.begin; layer < stage_.end; ++layer) {
    LayerState& state = At(layer);
    tensors.push_back({.name = profile_->layers[layer].name,
                       .kind = StateTensor::Kind::kParameter,
                       .spec = BytesSpec(state.parameters),
                       .bytes = state.parameters.bytes()});
    tensors.push_back({.name = profile_->layers[layer].name,
                       .kind = StateTensor::Kind::kFirstMoment,
                       .spec = BytesSpec(state.optimizer_state),
                       .bytes = state.optimizer_state.bytes()});
  }
  return tensors;
}

}  // namespace siphon
