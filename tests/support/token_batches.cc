#include "tests/support/token_batches.h"

#include <cstdlib>

#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kOneTargetIn = 6;

// Blocks of aligned memory that live as long as their owner.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (void* block : blocks_) std::free(block);
  }

  absl::Span<int64_t> Take(int64_t count) {
    const size_t bytes = (count * sizeof(int64_t) + kAlignment - 1) / kAlignment * kAlignment;
    blocks_.push_back(std::aligned_alloc(kAlignment, bytes));
    SIPHON_CHECK(blocks_.back() != nullptr, "a test's batch fits into memory");
    return absl::MakeSpan(static_cast<int64_t*>(blocks_.back()), count);
  }

 private:
  std::vector<void*> blocks_;
};

absl::Span<const std::byte> BytesOf(absl::Span<const int64_t> numbers) {
  return {reinterpret_cast<const std::byte*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

}  // namespace

TokenBatches MakeTokenBatches(const ModelSpec& model, const TokenBatchShape& shape, uint64_t seed) {
  auto arena = std::make_shared<Arena>();
  KeyedGenerator random(KeyedHash(RandomPurpose::kSyntheticData, {seed}));
  const TensorSpec input_spec = Batched(model.input, shape.microbatch);
  const TensorSpec target_spec = Batched(model.target, shape.microbatch);
  TokenBatches batches;
  for (int step = 0; step < shape.steps; ++step) {
    StepInputs inputs{.step = step, .mode = StepMode::kTrain, .target_count = 0};
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      const absl::Span<int64_t> tokens = arena->Take(ElementCount(input_spec));
      const absl::Span<int64_t> targets = arena->Take(ElementCount(target_spec));
      for (int64_t& token : tokens)
        token = static_cast<int64_t>(random.Below(model.options.vocabulary));
      for (int64_t& target : targets) {
        const bool wanted = model.objective != Objective::kMaskedToken ||
                            inputs.target_count == 0 || random.Below(kOneTargetIn) == 0;
        target = wanted ? static_cast<int64_t>(random.Below(model.classes)) : kIgnoredTarget;
        if (wanted) ++inputs.target_count;
      }
      inputs.microbatches.push_back({input_spec, target_spec, BytesOf(tokens), BytesOf(targets)});
    }
    batches.steps.push_back(std::move(inputs));
  }
  batches.memory = std::move(arena);
  return batches;
}

}  // namespace siphon
