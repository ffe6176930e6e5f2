#include "planner/models/backward_walk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr int64_t kFloatBytes = 4;

}  // namespace

BackwardWalk::BackwardWalk(const LayerTape& tape, LayerTape::Value output, BackwardKind kind)
    : tape_(tape), kind_(kind), gradient_of_(tape.values_.size(), -1) {
  // The output's gradient is the caller's, who holds it throughout, and counts it but for the
  // loss's.
  const std::vector<int64_t>& shape = tape.ShapeOf(output);
  if (shape.empty()) now_ = LayerTape::SizeOfOne(shape);
  gradients_.push_back({.holders = 2});
  gradient_of_[output] = 0;
  for (int index = static_cast<int>(tape.operations_.size()) - 1; index >= 0; --index) Run(index);
}

void BackwardWalk::Run(int index) {
  const Operation& operation = tape_.operations_[index];
  if (kind_ == BackwardKind::kInput && operation.parameters > 0) Queue(operation);
  MakeInputGradients(operation);
  ReleaseOutputGradients(operation);
  if (kind_ == BackwardKind::kWhole) FreeSavedBy(index);
}

void BackwardWalk::Queue(const Operation& operation) {
  const int block = gradient_of_[operation.outputs.front()];
  if (block < 0 || gradients_[block].queued) return;
  gradients_[block].queued = true;
  ++gradients_[block].holders;
  queued_.push_back({.name = absl::StrCat(operation.name, ".gradient"),
                     .sample = {DType::kFloat32, tape_.ShapeOf(operation.outputs.front())},
                     .kept_for_weights = true});
}

void BackwardWalk::MakeInputGradients(const Operation& operation) {
  std::vector<std::pair<LayerTape::Value, int>> arriving;
  for (const LayerTape::Operand& operand : operation.inputs) {
    if (operand.gradient == LayerTape::Gradient::kNone) continue;
    int block = gradient_of_[operation.outputs.front()];
    if (operand.gradient == LayerTape::Gradient::kNew) {
      block = NewGradient(tape_.ShapeOf(operand.value));
    } else {
      ++gradients_[block].holders;
    }
    arriving.push_back({operand.value, block});
  }
  if (kind_ == BackwardKind::kWhole) now_.fixed += Bytes(kFloatBytes * operation.parameters);
  Note(operation.backward_tile);
  for (const auto& [value, block] : arriving) Arrive(value, block);
}

void BackwardWalk::Arrive(LayerTape::Value value, int block) {
  int& present = gradient_of_[value];
  if (present < 0) {
    present = block;
    return;
  }
  if (gradients_[present].holders > 1) {  // the sum needs memory of its own
    const int sum = NewGradient(tape_.ShapeOf(value));
    Note(Bytes());
    Release(std::exchange(present, sum));
  }
  Release(block);
}

void BackwardWalk::ReleaseOutputGradients(const Operation& operation) {
  for (const LayerTape::Value output : operation.outputs) {
    if (gradient_of_[output] >= 0) Release(std::exchange(gradient_of_[output], -1));
  }
}

void BackwardWalk::FreeSavedBy(int index) {
  for (const LayerTape::Block& block : tape_.blocks_) {
    if (block.saved && block.first_saver == index && block.sample.dtype == DType::kFloat32) {
      Free(LayerTape::SizeOfOne(block.sample.shape));
    }
  }
}

int BackwardWalk::NewGradient(const std::vector<int64_t>& shape) {
  const WorkspaceMoment size = LayerTape::SizeOfOne(shape);
  gradients_.push_back({.size = size, .holders = 1});
  now_.per_sample += size.per_sample;
  now_.fixed += size.fixed;
  return static_cast<int>(gradients_.size()) - 1;
}

void BackwardWalk::Free(const WorkspaceMoment& size) {
  now_.per_sample -= size.per_sample;
  now_.fixed -= size.fixed;
}

void BackwardWalk::Release(int block) {
  if (--gradients_[block].holders == 0) Free(gradients_[block].size);
}

void BackwardWalk::Note(Bytes tile) { moments_.push_back({now_.per_sample, now_.fixed + tile}); }

std::vector<WorkspaceMoment> FullestMoments(std::vector<WorkspaceMoment> moments) {
  const auto fuller = [](const WorkspaceMoment& a, const WorkspaceMoment& b) {
    return a.per_sample != b.per_sample ? a.per_sample > b.per_sample : a.fixed > b.fixed;
  };
  std::sort(moments.begin(), moments.end(), fuller);
  std::vector<WorkspaceMoment> fullest;
  for (const WorkspaceMoment& moment : moments) {
    const bool holds_something = moment.per_sample > Bytes() || moment.fixed > Bytes();
    if (holds_something && (fullest.empty() || moment.fixed > fullest.back().fixed)) {
      fullest.push_back(moment);
    }
  }
  return fullest;
}

}  // namespace siphon
