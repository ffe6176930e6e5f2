#ifndef SIPHON_TESTS_PIPELINE_FAKE_STATE_MEMORY_H_
#define SIPHON_TESTS_PIPELINE_FAKE_STATE_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "pipeline/state_memory.h"

namespace siphon {

// Training state of four numbers a layer and kind, which know where they belong.
class FakeStateMemory final : public StateMemory {
 public:
  absl::StatusOr<TensorSpans> Tensors(const StateGroup& group) override {
    TensorSpans spans;
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      std::vector<float>& numbers = numbers_[{group.kind, layer}];
      spans.emplace_back(reinterpret_cast<std::byte*>(numbers.data()),
                         numbers.size() * sizeof(float));
    }
    return spans;
  }
  absl::Status Free(const StateGroup& group) override {
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      numbers_[{group.kind, layer}].clear();
    }
    return absl::OkStatus();
  }
  absl::StatusOr<TensorSpans> Refill(const StateGroup& group) override {
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      std::vector<float>& numbers = numbers_[{group.kind, layer}];
      if (numbers.empty()) numbers.assign(4, std::numeric_limits<float>::quiet_NaN());
    }
    most_there_ = std::max(most_there_, there());
    return Tensors(group);
  }
  absl::Status Initialise(const StateGroup& group) override {
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      numbers_[{group.kind, layer}] = Values(group.kind, layer, 0);
    }
    return absl::OkStatus();
  }

  // What the numbers are after so many changes.
  static std::vector<float> Values(GroupKind kind, int layer, int changes) {
    const auto begin = static_cast<float>(1000 * layer + 100 * static_cast<int>(kind));
    return {begin, begin + 1, begin + 2, begin + static_cast<float>(changes)};
  }
  bool IsThere(GroupKind kind, int layer) const {
    const auto found = numbers_.find({kind, layer});
    return found != numbers_.end() && !found->second.empty();
  }
  // Tensors that have memory, and the most that had since the last call of ResetMost.
  int there() const {
    return static_cast<int>(std::count_if(numbers_.begin(), numbers_.end(),
                                          [](const auto& each) { return !each.second.empty(); }));
  }
  int most_there() const { return most_there_; }
  void ResetMost() { most_there_ = there(); }
  // Those of the tensor, empty while it is freed.
  std::vector<float>& numbers(GroupKind kind, int layer) { return numbers_[{kind, layer}]; }

 private:
  std::map<std::pair<GroupKind, int>, std::vector<float>> numbers_;
  int most_there_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_FAKE_STATE_MEMORY_H_
