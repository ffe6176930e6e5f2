// data.kind synthetic: samples made of the seed, that a model can learn.
//   next and masked tokens: a Markov chain; nine of ten ids are followed by their one successor
//   classification: a template for each class, with as much noise on it
// Nothing is stored: each sample is computed from (seed, its number).

#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/data/keyed_permutation.h"
#include "launch/data/sources.h"
#include "launch/data/token_windows.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr double kSuccessorProbability = 0.9;
constexpr double kNoise = 1.0;  // standard deviation; templates have 1

// Parts of the key, so that no two uses share draws.
enum class Part : uint64_t { kSuccessors, kTokens, kTemplate, kNoise };

uint64_t KeyOf(uint64_t seed, Part part, uint64_t number) {
  return KeyedHash(RandomPurpose::kSyntheticData, {seed, static_cast<uint64_t>(part), number});
}

// Uniform with mean 0 and standard deviation 1.
double Spread(KeyedGenerator& generator) { return (2 * generator.Uniform() - 1) * std::sqrt(3.0); }

absl::Status Unfit(const ModelSpec& model, absl::string_view needed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "data.kind synthetic makes ", needed, "; model ", model.options.kind, " takes ",
      ToString(model.input), ", target ", ToString(model.target), ", classes ", model.classes));
}

struct MarkovChain {
  // The id after the last one of `ids` is drawn too: the last target.
  void Fill(uint64_t sample, absl::Span<int64_t> ids, int64_t& next) const {
    KeyedGenerator generator(KeyOf(seed, Part::kTokens, sample));
    next = static_cast<int64_t>(generator.Below(vocabulary));
    for (int64_t& id : ids) {
      id = next;
      next = static_cast<int64_t>(generator.Uniform() < kSuccessorProbability
                                      ? successor(static_cast<uint64_t>(id))
                                      : generator.Below(vocabulary));
    }
  }
  uint64_t seed;
  uint64_t vocabulary;
  KeyedPermutation successor;
};

using Reader = decltype(Dataset::read);

absl::StatusOr<Reader> TokenReader(const DatasetOptions& options, const ModelSpec& model,
                                   SplitSizes sizes) {
  const int64_t length = ElementCount(model.input);
  const bool masked = model.objective == Objective::kMaskedToken;
  const int64_t vocabulary = model.classes - (masked ? 1 : 0);
  if (model.input.dtype != DType::kInt64 || model.target != model.input || length < 1 ||
      vocabulary < 2) {
    return Unfit(model,
                 "sequences of at least two different ids (and a mask id) with as many targets");
  }
  const auto ids = static_cast<uint64_t>(vocabulary);
  const MarkovChain chain{options.seed, ids,
                          KeyedPermutation(KeyOf(options.seed, Part::kSuccessors, ids), ids)};
  return Reader([chain, sizes, length, masked, vocabulary](
                    Split split, int64_t sample, uint64_t key, absl::Span<std::byte> input_bytes,
                    absl::Span<std::byte> target_bytes) -> absl::Status {
    SIPHON_RETURN_IF_ERROR(CheckSampleNumber(split, sample, sizes));
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<int64_t> input, AsIds(input_bytes, length));
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<int64_t> target, AsIds(target_bytes, length));
    const int64_t number = sample + (split == Split::kTrain ? 0 : sizes.training);
    int64_t last = 0;
    chain.Fill(static_cast<uint64_t>(number), input, last);
    if (masked) {
      MaskTokens(key, vocabulary, input, target);
      return absl::OkStatus();
    }
    std::copy(input.begin() + 1, input.end(), target.begin());
    target.back() = last;
    return absl::OkStatus();
  });
}

absl::StatusOr<Reader> ClassReader(const DatasetOptions& options, const ModelSpec& model,
                                   SplitSizes sizes) {
  const int64_t elements = ElementCount(model.input);
  if (model.input.dtype != DType::kFloat32 || model.target.dtype != DType::kInt64 ||
      ElementCount(model.target) != 1 || elements < 1 || model.classes < 1) {
    return Unfit(model, "F32 inputs of any shape with one I64 label each");
  }
  const auto bytes = static_cast<size_t>(SizeOf(model.input).value);
  return Reader([seed = options.seed, classes = static_cast<uint64_t>(model.classes), sizes, bytes](
                    Split split, int64_t sample, uint64_t, absl::Span<std::byte> input,
                    absl::Span<std::byte> target) -> absl::Status {
    SIPHON_RETURN_IF_ERROR(CheckSampleNumber(split, sample, sizes));
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<int64_t> label, AsIds(target, 1));
    if (input.size() != bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a sample's buffer has ", input.size(), " bytes; it takes ", bytes));
    }
    const int64_t number = sample + (split == Split::kTrain ? 0 : sizes.training);
    KeyedGenerator noise(KeyOf(seed, Part::kNoise, static_cast<uint64_t>(number)));
    label[0] = static_cast<int64_t>(noise.Below(classes));
    KeyedGenerator pattern(KeyOf(seed, Part::kTemplate, static_cast<uint64_t>(label[0])));
    for (size_t at = 0; at < bytes; at += sizeof(float)) {
      const double mean = Spread(pattern);  // apart, since operands have no order
      const auto value = static_cast<float>(mean + kNoise * Spread(noise));
      std::memcpy(input.data() + at, &value, sizeof(float));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<int64_t> SyntheticVocabulary(const DatasetOptions&) { return 0; }

absl::StatusOr<Dataset> OpenSynthetic(const DatasetOptions& options, const ModelSpec& model) {
  const SplitSizes sizes = SplitSamples(options.samples, options.validation_fraction);
  if (sizes.training < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.samples ", options.samples, " leaves ", sizes.validation,
                     " to validate and none to train; write ",
                     options.validation_fraction > 0 ? 2 : 1, " or more"));
  }
  Dataset data{model.input, model.target, sizes.training, sizes.validation};
  data.fingerprint = absl::StrFormat("synthetic:%d:%d:%.17g", options.samples, options.seed,
                                     options.validation_fraction);
  const bool labels = model.objective == Objective::kClassification;
  SIPHON_ASSIGN_OR_RETURN(
      data.read, labels ? ClassReader(options, model, sizes) : TokenReader(options, model, sizes));
  return data;
}

}  // namespace siphon
