#include "launch/data/token_windows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr double kMaskedFraction = 0.15;
constexpr double kMaskIdFraction = 0.8;  // of the masked ones
constexpr double kRandomIdFraction = 0.1;

// Of next tokens, a window needs one id more than its length: the last target.
int64_t ExtraIds(Objective objective) { return objective == Objective::kNextToken ? 1 : 0; }

absl::Status CheckModel(const TokenStream& stream, const DatasetOptions& options,
                        const ModelSpec& model) {
  const TensorSpec row{DType::kInt64, {options.sequence_length}};
  if (model.objective == Objective::kClassification || model.input != row || model.target != row) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.kind ", options.kind, " makes sequences, ", ToString(row),
                     " with a target for each; model ", model.options.kind, " takes ",
                     ToString(model.input), " and target ", ToString(model.target)));
  }
  const bool masked = model.objective == Objective::kMaskedToken;
  const int64_t needed = stream.vocabulary + (masked ? 1 : 0);
  if (model.classes < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat(stream.place, " needs a vocabulary of ", needed,
                     masked ? " (mask id included)" : "", "; the model's has ", model.classes,
                     ": set model.vocabulary to ", needed, " or more, or leave it out"));
  }
  return absl::OkStatus();
}

absl::Status TooShort(const TokenStream& stream, const DatasetOptions& options, int64_t extra) {
  const int64_t one = options.sequence_length + extra;
  if (stream.size < one || options.validation_fraction == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(stream.place, " has ", stream.size, " ", stream.unit, "; one sequence needs ",
                     one, " (data.sequence_length ", options.sequence_length,
                     extra == 1 ? " and the last target)" : ")"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(stream.place, " has ", stream.size, " ", stream.unit,
                   "; one sequence to train and one to validate need ",
                   2 * options.sequence_length + extra, " (or set data.validation_fraction to 0)"));
}

std::string Fingerprint(const TokenStream& stream, const DatasetOptions& options) {
  return absl::StrFormat("%s:%d:%016x:%d:%.17g", options.kind, stream.size, stream.content_hash,
                         options.sequence_length, options.validation_fraction);
}

// LibTorch does not check ids: one that the model does not have would read foreign memory. They
// were checked when the file was opened, but it is mapped, and may have been written since.
absl::Status CheckIds(absl::Span<const int64_t> ids, const TokenStream& stream, int64_t classes) {
  for (const int64_t id : ids) {
    if (id >= 0 && id < classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(stream.place, " has changed while in use: id ",
                                                   id, "; the model's vocabulary is ", classes));
  }
  return absl::OkStatus();
}

}  // namespace

SplitSizes SplitSamples(int64_t samples, double fraction) {
  if (fraction == 0) return {samples, 0};
  const auto share = static_cast<int64_t>(std::llround(static_cast<double>(samples) * fraction));
  const int64_t validation = std::max<int64_t>(std::min(share, samples - 1), 1);
  return {samples - validation, validation};
}

absl::Status CheckSampleNumber(Split split, int64_t sample, const SplitSizes& sizes) {
  const int64_t count = split == Split::kTrain ? sizes.training : sizes.validation;
  if (sample >= 0 && sample < count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no ",
                                                 split == Split::kTrain ? "training" : "validation",
                                                 " sample ", sample, "; there are ", count));
}

absl::StatusOr<absl::Span<int64_t>> AsIds(absl::Span<std::byte> bytes, int64_t count) {
  if (static_cast<int64_t>(bytes.size()) != count * static_cast<int64_t>(sizeof(int64_t))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sample's buffer has ", bytes.size(), " bytes; ", count, " ids of 8 bytes go into it"));
  }
  return absl::MakeSpan(reinterpret_cast<int64_t*>(bytes.data()), static_cast<size_t>(count));
}

void MaskTokens(uint64_t key, int64_t vocabulary, absl::Span<int64_t> input,
                absl::Span<int64_t> target) {
  SIPHON_CHECK(!input.empty() && input.size() == target.size(), "a sequence has ids to mask");
  KeyedGenerator generator(key);
  std::fill(target.begin(), target.end(), kIgnoredTarget);
  const auto mask = [&](size_t position) {
    target[position] = input[position];
    const double kind = generator.Uniform();
    if (kind < kMaskIdFraction) {
      input[position] = vocabulary;
    } else if (kind < kMaskIdFraction + kRandomIdFraction) {
      input[position] = static_cast<int64_t>(generator.Below(static_cast<uint64_t>(vocabulary)));
    }
  };
  bool any = false;
  for (size_t position = 0; position < input.size(); ++position) {
    if (generator.Uniform() >= kMaskedFraction) continue;
    mask(position);
    any = true;
  }
  if (!any) mask(generator.Below(input.size()));
}

absl::StatusOr<Dataset> CutIntoWindows(const TokenStream& stream, const DatasetOptions& options,
                                       const ModelSpec& model) {
  SIPHON_RETURN_IF_ERROR(CheckModel(stream, options, model));
  const int64_t length = options.sequence_length;
  const int64_t extra = ExtraIds(model.objective);
  const int64_t windows = std::max<int64_t>(stream.size - extra, 0) / length;
  const SplitSizes sizes = SplitSamples(windows, options.validation_fraction);
  if (sizes.training < 1) return TooShort(stream, options, extra);

  Dataset data{model.input, model.target, sizes.training, sizes.validation,
               Fingerprint(stream, options)};
  data.read = [stream, sizes, length, classes = model.classes, objective = model.objective](
                  Split split, int64_t sample, uint64_t key, absl::Span<std::byte> input_bytes,
                  absl::Span<std::byte> target_bytes) -> absl::Status {
    SIPHON_RETURN_IF_ERROR(CheckSampleNumber(split, sample, sizes));
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<int64_t> input, AsIds(input_bytes, length));
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<int64_t> target, AsIds(target_bytes, length));
    const int64_t window = sample + (split == Split::kTrain ? 0 : sizes.training);
    SIPHON_RETURN_IF_ERROR(stream.file->CheckWhole(stream.place));
    stream.copy(window * length, input);
    SIPHON_RETURN_IF_ERROR(CheckIds(input, stream, classes));
    if (objective == Objective::kMaskedToken) {
      MaskTokens(key, stream.vocabulary, input, target);
      return absl::OkStatus();
    }
    stream.copy(window * length + 1, target);
    return CheckIds(target, stream, classes);
  };
  return data;
}

}  // namespace siphon
