#include "launch/data/batches.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "launch/data/keyed_permutation.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"
#include "planner/units.h"

namespace siphon {
namespace {

constexpr int64_t kAlignment = 64;  // bytes; what every tensor handed to LibTorch starts on

// One place of a batch: which sample stands there, and the key of its masks.
struct Place {
  Split split;
  int64_t sample;
  uint64_t key;
};

uint64_t MaskKey(Split split, uint64_t seed, int64_t epoch, int64_t sample) {
  return KeyedHash(RandomPurpose::kTokenMask,
                   {seed, static_cast<uint64_t>(split), static_cast<uint64_t>(epoch),
                    static_cast<uint64_t>(sample)});
}

absl::Status CheckShape(const BatchShape& shape) {
  if (shape.microbatch >= 1 && shape.global_batch >= 1 &&
      shape.global_batch % shape.microbatch == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("global batch ", shape.global_batch,
                                                 " is not a positive multiple of microbatch ",
                                                 shape.microbatch));
}

// Bytes of `count` samples, up to the next boundary.
absl::StatusOr<int64_t> AlignedBytes(const TensorSpec& sample, int64_t count) {
  SIPHON_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedProduct(SizeOf(sample).value, count, "bytes of a microbatch"));
  return std::max(bytes, int64_t{1}) +
         (kAlignment - std::max(bytes, int64_t{1}) % kAlignment) % kAlignment;
}

int64_t CountTargets(absl::Span<const std::byte> target) {
  int64_t count = 0;
  for (size_t at = 0; at < target.size(); at += sizeof(int64_t)) {
    int64_t id = 0;
    std::memcpy(&id, target.data() + at, sizeof(id));
    count += id != kIgnoredTarget ? 1 : 0;
  }
  return count;
}

absl::StatusOr<Batch> Fill(const Dataset& data, const BatchShape& shape,
                           const std::function<Place(int64_t)>& place_of) {
  const int64_t count = shape.global_batch / shape.microbatch;
  SIPHON_ASSIGN_OR_RETURN(const int64_t input_bytes, AlignedBytes(data.input, shape.microbatch));
  SIPHON_ASSIGN_OR_RETURN(const int64_t target_bytes, AlignedBytes(data.target, shape.microbatch));
  SIPHON_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedProduct(input_bytes + target_bytes, count, "bytes of a batch"));
  Batch batch;
  batch.memory.reset(static_cast<std::byte*>(
      std::aligned_alloc(static_cast<size_t>(kAlignment), static_cast<size_t>(bytes))));
  if (batch.memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("a batch of ", shape.global_batch,
                                                     " samples takes ", FormatBytes(Bytes(bytes))));
  }
  batch.input_spec = Batched(data.input, shape.microbatch);
  batch.target_spec = Batched(data.target, shape.microbatch);
  const auto input_size = static_cast<size_t>(SizeOf(data.input).value);
  const auto target_size = static_cast<size_t>(SizeOf(data.target).value);
  std::byte* at = batch.memory.get();
  for (int64_t microbatch = 0; microbatch < count; ++microbatch) {
    const auto samples = static_cast<size_t>(shape.microbatch);
    const auto input = absl::MakeSpan(at, samples * input_size);
    const auto target = absl::MakeSpan(at + input_bytes, samples * target_size);
    for (size_t row = 0; row < samples; ++row) {
      const Place place = place_of(microbatch * shape.microbatch + static_cast<int64_t>(row));
      SIPHON_RETURN_IF_ERROR(data.read(place.split, place.sample, place.key,
                                       input.subspan(row * input_size, input_size),
                                       target.subspan(row * target_size, target_size)));
    }
    batch.microbatches.push_back({input, target});
    batch.target_count += CountTargets(target);
    at += input_bytes + target_bytes;
  }
  return batch;
}

}  // namespace

void Batch::FreeAligned::operator()(std::byte* memory) const { std::free(memory); }

absl::StatusOr<Batch> TrainingBatch(const Dataset& data, const BatchShape& shape, uint64_t seed,
                                    int64_t first_sample) {
  SIPHON_RETURN_IF_ERROR(CheckShape(shape));
  const int64_t samples = data.training_samples;
  int64_t end = 0;
  if (first_sample < 0 || samples < 1 ||
      __builtin_add_overflow(first_sample, shape.global_batch, &end)) {
    return absl::InvalidArgumentError(absl::StrCat("no training batch of ", shape.global_batch,
                                                   " at sample ", first_sample, " of ", samples));
  }
  const auto permutation_of = [&](int64_t epoch) {
    return KeyedPermutation(
        KeyedHash(RandomPurpose::kDataOrder, {seed, static_cast<uint64_t>(epoch)}),
        static_cast<uint64_t>(samples));
  };
  int64_t epoch = first_sample / samples;
  KeyedPermutation permutation = permutation_of(epoch);
  return Fill(data, shape, [&](int64_t place) {
    const int64_t consumed = first_sample + place;
    if (consumed / samples != epoch) {
      epoch = consumed / samples;
      permutation = permutation_of(epoch);
    }
    const auto sample =
        static_cast<int64_t>(permutation(static_cast<uint64_t>(consumed % samples)));
    return Place{Split::kTrain, sample, MaskKey(Split::kTrain, seed, epoch, sample)};
  });
}

absl::StatusOr<Batch> ValidationBatch(const Dataset& data, const BatchShape& shape, uint64_t seed,
                                      int64_t index) {
  SIPHON_RETURN_IF_ERROR(CheckShape(shape));
  const int64_t batches = ValidationBatchCount(data, shape);
  if (index < 0 || index >= batches) {
    return absl::InvalidArgumentError(absl::StrCat("no validation batch ", index, "; ",
                                                   data.validation_samples, " samples make ",
                                                   batches, " batches of ", shape.global_batch));
  }
  return Fill(data, shape, [&](int64_t place) {
    const int64_t sample = index * shape.global_batch + place;
    return Place{Split::kValidation, sample, MaskKey(Split::kValidation, seed, 0, sample)};
  });
}

int64_t ValidationBatchCount(const Dataset& data, const BatchShape& shape) {
  return shape.global_batch < 1 ? 0 : data.validation_samples / shape.global_batch;
}

}  // namespace siphon
