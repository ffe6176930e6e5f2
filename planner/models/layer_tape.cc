#include "planner/models/layer_tape.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/models/backward_walk.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kFloatBytes = 4;

std::vector<int64_t> WithLast(std::vector<int64_t> shape, int64_t last) {
  shape.back() = last;
  return shape;
}

std::vector<int64_t> WithoutLast(std::vector<int64_t> shape) {
  shape.pop_back();
  return shape;
}

// Of each row of x, as long as its last dimension, with so many columns.
int64_t ProductFlops(const std::vector<int64_t>& x, int64_t columns) {
  return 2 * ElementCount({DType::kFloat32, x}) * columns;
}

// Tiles of LibTorch's fused attention on the CPU (ATen/native/cpu/FlashAttentionKernel.cpp).
struct AttentionTile {
  explicit AttentionTile(int64_t sequence)
      : query(std::min<int64_t>(sequence >= 768   ? 256
                                : sequence >= 192 ? 64
                                                  : 32,
                                sequence)),
        key(std::min<int64_t>(512, sequence)) {}
  Bytes Forward(int64_t head_size) const {
    return Bytes(kFloatBytes * (query * key + 2 * query + query * head_size));
  }
  Bytes Backward() const { return Bytes(kFloatBytes * (2 * query * key + query)); }
  int64_t query;
  int64_t key;
};

}  // namespace

WorkspaceMoment LayerTape::SizeOfOne(const std::vector<int64_t>& shape) {
  const Bytes size = SizeOf({DType::kFloat32, shape});
  return shape.empty() ? WorkspaceMoment{.fixed = size} : WorkspaceMoment{.per_sample = size};
}

int LayerTape::NewBlock(std::vector<int64_t> shape) {
  blocks_.push_back({.sample = {DType::kFloat32, std::move(shape)}});
  return static_cast<int>(blocks_.size()) - 1;
}

LayerTape::Value LayerTape::NewValue(int block, std::vector<int64_t> shape) {
  ++blocks_[block].holders;
  values_.push_back({block, std::move(shape)});
  return static_cast<Value>(values_.size()) - 1;
}

LayerTape::Value LayerTape::Input(std::vector<int64_t> shape) {
  const int block = NewBlock(shape);
  blocks_[block].counted = false;
  return NewValue(block, std::move(shape));
}

LayerTape::Value LayerTape::TokenIds(std::vector<int64_t> shape) {
  const Value ids = Input(std::move(shape));
  blocks_[BlockOf(ids)].sample.dtype = DType::kInt64;
  return ids;
}

LayerTape::Value LayerTape::Named(const std::string& name, Value x) {
  blocks_[BlockOf(x)].name = name;
  return x;
}

void LayerTape::Save(int block, const std::string& name, Reader reader) {
  Block& saved = blocks_[block];
  saved.kept_for_weights |= reader == Reader::kWeightGradient;
  if (saved.saved) return;
  saved.saved = true;
  if (saved.name.empty()) saved.name = name;
  saved.first_saver = static_cast<int>(operations_.size());
  saved.flops_before = flops_;
}

void LayerTape::SaveResult(int block, const std::string& name, Reader reader) {
  Save(block, name, reader);
  blocks_[block].first_saver = static_cast<int>(operations_.size()) - 1;
}

void LayerTape::SaveNew(const std::string& name, std::vector<int64_t> shape, Reader reader,
                        SavedPrecision precision) {
  const int block = NewBlock(std::move(shape));
  blocks_[block].precision = precision;
  Take(block);
  Save(block, name, reader);
}

void LayerTape::Take(int block) {
  const WorkspaceMoment size = SizeOfOne(blocks_[block].sample.shape);
  now_.per_sample += size.per_sample;
  now_.fixed += size.fixed;
}

void LayerTape::Append(Operation operation) {
  forward_.push_back({now_.per_sample, now_.fixed + operation.forward_tile});
  flops_ += operation.flops;
  operations_.push_back(std::move(operation));
}

LayerTape::Value LayerTape::AppendUnary(Operation operation, std::vector<int64_t> shape) {
  const int block = NewBlock(shape);
  Take(block);
  operation.outputs = {NewValue(block, std::move(shape))};
  const Value result = operation.outputs.front();
  Append(std::move(operation));
  return result;
}

void LayerTape::Forget(Value x) {
  Block& block = blocks_[BlockOf(x)];
  SIPHON_CHECK(block.holders > 0, "a value is forgotten once");
  --block.holders;
  if (block.holders > 0 || block.saved || !block.counted) return;
  const WorkspaceMoment size = SizeOfOne(block.sample.shape);
  now_.per_sample -= size.per_sample;
  now_.fixed -= size.fixed;
}

LayerTape::Value LayerTape::Embedding(const std::string& name, Value ids, int64_t entries,
                                      int64_t width) {
  std::vector<int64_t> shape = ShapeOf(ids);
  shape.push_back(width);
  const int64_t copies = ElementCount({DType::kFloat32, shape});
  return AppendUnary({.name = name,
                      .inputs = {{ids, Gradient::kNone}},
                      .parameters = entries * width,
                      .flops = copies},
                     std::move(shape));
}

LayerTape::Value LayerTape::AddParameter(const std::string& name, Value x, int64_t elements) {
  return AppendUnary({.name = name, .inputs = {{x, Gradient::kSame}}, .parameters = elements},
                     ShapeOf(x));
}

LayerTape::Value LayerTape::Linear(const std::string& name, Value x, int64_t columns,
                                   int64_t bias_elements) {
  Save(BlockOf(x), absl::StrCat(name, ".input"), Reader::kWeightGradient);
  return AppendUnary({.name = name,
                      .inputs = {{x, Gradient::kNew}},
                      .parameters = ShapeOf(x).back() * columns + bias_elements,
                      .flops = ProductFlops(ShapeOf(x), columns)},
                     WithLast(ShapeOf(x), columns));
}

LayerTape::Value LayerTape::LayerNorm(const std::string& name, Value x) {
  Save(BlockOf(x), absl::StrCat(name, ".input"), Reader::kWeightGradient);
  for (const absl::string_view statistic : {"mean", "deviation"}) {
    SaveNew(absl::StrCat(name, ".", statistic), WithoutLast(ShapeOf(x)), Reader::kWeightGradient,
            SavedPrecision::kFloat32);
  }
  return AppendUnary(
      {.name = name, .inputs = {{x, Gradient::kNew}}, .parameters = 2 * ShapeOf(x).back()},
      ShapeOf(x));
}

LayerTape::Value LayerTape::Activation(const std::string& name, Value x,
                                       const std::string& activation) {
  const bool saves_result = activation == "relu";
  if (!saves_result) Save(BlockOf(x), absl::StrCat(name, ".input"), Reader::kInputGradient);
  const Value result = AppendUnary({.name = name, .inputs = {{x, Gradient::kNew}}}, ShapeOf(x));
  if (saves_result) {
    SaveResult(BlockOf(result), absl::StrCat(name, ".output"), Reader::kInputGradient);
  }
  return result;
}

LayerTape::Value LayerTape::Dropout(const std::string& name, Value x, double probability) {
  if (probability == 0) return x;
  SaveNew(absl::StrCat(name, ".mask"), ShapeOf(x), Reader::kInputGradient,
          SavedPrecision::kAsComputed);
  return AppendUnary({.name = name, .inputs = {{x, Gradient::kNew}}}, ShapeOf(x));
}

LayerTape::Value LayerTape::Add(Value a, Value b) {
  return AppendUnary({.name = "add", .inputs = {{a, Gradient::kSame}, {b, Gradient::kSame}}},
                     ShapeOf(a));
}

std::vector<LayerTape::Value> LayerTape::Split(Value x, int64_t parts) {
  Operation operation{.name = "split", .inputs = {{x, Gradient::kNew}}};
  for (int64_t part = 0; part < parts; ++part) {
    operation.outputs.push_back(
        NewValue(BlockOf(x), WithLast(ShapeOf(x), ShapeOf(x).back() / parts)));
  }
  std::vector<Value> views = operation.outputs;
  Append(std::move(operation));
  return views;
}

LayerTape::Value LayerTape::MultiplyBatched(const std::string& name, Value a, Value b,
                                            std::vector<int64_t> shape) {
  Save(BlockOf(a), absl::StrCat(name, ".left"), Reader::kInputGradient);
  Save(BlockOf(b), absl::StrCat(name, ".right"), Reader::kInputGradient);
  const int64_t flops = ProductFlops(ShapeOf(a), shape.back());
  return AppendUnary(
      {.name = name, .inputs = {{a, Gradient::kNew}, {b, Gradient::kNew}}, .flops = flops},
      std::move(shape));
}

LayerTape::Value LayerTape::Scale(Value x) {
  return AppendUnary({.name = "scale", .inputs = {{x, Gradient::kNew}}}, ShapeOf(x));
}

LayerTape::Value LayerTape::AddConstant(Value x, int64_t elements) {
  return AppendUnary({.name = "add",
                      .inputs = {{x, Gradient::kSame}},
                      .forward_tile = Bytes(kFloatBytes * elements)},
                     ShapeOf(x));
}

LayerTape::Value LayerTape::Softmax(const std::string& name, Value x) {
  const Value result = AppendUnary({.name = name, .inputs = {{x, Gradient::kNew}}}, ShapeOf(x));
  SaveResult(BlockOf(result), absl::StrCat(name, ".output"), Reader::kInputGradient);
  return result;
}

LayerTape::Value LayerTape::Copy(Value x, std::vector<int64_t> shape) {
  return AppendUnary({.name = "copy", .inputs = {{x, Gradient::kNew}}}, std::move(shape));
}

LayerTape::Value LayerTape::FusedAttention(const std::string& name, Value query, Value key,
                                           Value value, int64_t heads) {
  const int64_t sequence = ShapeOf(query).front();
  const AttentionTile tile(sequence);
  Save(BlockOf(query), absl::StrCat(name, ".query"), Reader::kInputGradient);
  Save(BlockOf(key), absl::StrCat(name, ".key"), Reader::kInputGradient);
  Save(BlockOf(value), absl::StrCat(name, ".value"), Reader::kInputGradient);
  SaveNew(absl::StrCat(name, ".log_sum"), {heads, sequence}, Reader::kInputGradient,
          SavedPrecision::kFloat32);
  const int log_sum = static_cast<int>(blocks_.size()) - 1;
  const Value result = AppendUnary(
      {.name = name,
       .inputs = {{query, Gradient::kNew}, {key, Gradient::kNew}, {value, Gradient::kNew}},
       .forward_tile = tile.Forward(ShapeOf(query).back() / heads),
       .backward_tile = tile.Backward(),
       .flops = 2 * ProductFlops(ShapeOf(query), sequence)},
      ShapeOf(query));
  blocks_[log_sum].flops_before = flops_;  // made together with the result
  SaveResult(BlockOf(result), absl::StrCat(name, ".output"), Reader::kInputGradient);
  return result;
}

LayerTape::Value LayerTape::CrossEntropy(Value logits) {
  const Value log_probabilities =
      AppendUnary({.name = "loss.softmax", .inputs = {{logits, Gradient::kNew}}}, ShapeOf(logits));
  blocks_[BlockOf(log_probabilities)].precision = SavedPrecision::kFloat32;
  SaveResult(BlockOf(log_probabilities), "loss.log_probabilities", Reader::kInputGradient);
  SaveNew("loss.total_weight", {}, Reader::kInputGradient, SavedPrecision::kFloat32);
  const Value sum =
      AppendUnary({.name = "loss.sum", .inputs = {{log_probabilities, Gradient::kNew}}}, {});
  Forget(log_probabilities);
  return Scale(sum);
}

std::vector<WorkspaceMoment> LayerTape::MomentsUntil(int operation) const {
  return FullestMoments({forward_.begin(), forward_.begin() + operation + 1});
}

LayerMemory LayerTape::Finish(Value output) {
  const int result = BlockOf(output);
  // What the pass ends with and others count. The loss is no boundary: it is counted here.
  WorkspaceMoment end;
  const auto ends_with = [&end](const Block& block) {
    const WorkspaceMoment size = SizeOfOne(block.sample.shape);
    end.per_sample += size.per_sample;
    end.fixed += size.fixed;
  };
  if (blocks_[result].counted && !blocks_[result].sample.shape.empty()) ends_with(blocks_[result]);
  LayerMemory memory;
  for (int index = 0; index < static_cast<int>(blocks_.size()); ++index) {
    const Block& block = blocks_[index];
    if (!block.saved || block.sample.dtype != DType::kFloat32) continue;
    const SavedStorage storage = !block.counted    ? SavedStorage::kInput
                                 : index == result ? SavedStorage::kOutput
                                                   : SavedStorage::kOwn;
    if (storage == SavedStorage::kOwn) ends_with(block);
    memory.saved.push_back({.name = block.name,
                            .sample = block.sample,
                            .storage = storage,
                            .precision = block.precision,
                            .kept_for_weights = block.kept_for_weights,
                            .flops_before = block.flops_before,
                            .forward_until = MomentsUntil(block.first_saver)});
  }
  std::stable_sort(memory.saved.begin(), memory.saved.end(),
                   [](const SavedTensorSpec& a, const SavedTensorSpec& b) {
                     return a.flops_before < b.flops_before;
                   });
  for (WorkspaceMoment& moment : forward_) {
    moment.per_sample -= end.per_sample;
    moment.fixed -= end.fixed;
  }
  memory.forward = FullestMoments(std::move(forward_));
  BackwardWalk whole(*this, output, BackwardKind::kWhole);
  memory.backward = FullestMoments(whole.TakeMoments());
  BackwardWalk input(*this, output, BackwardKind::kInput);
  memory.input_backward = FullestMoments(input.TakeMoments());
  memory.queued = input.TakeQueued();
  return memory;
}

}  // namespace siphon
