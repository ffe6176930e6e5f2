#ifndef SIPHON_LAUNCH_DATA_TOKEN_WINDOWS_H_
#define SIPHON_LAUNCH_DATA_TOKEN_WINDOWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/data/dataset.h"
#include "launch/data/mapped_file.h"

namespace siphon {

// One long row of token ids, wherever it comes from.
struct TokenStream {
  std::string place;       // for messages: "data.path runs/data/bible.txt"
  std::string unit;        // "bytes" or "tokens"
  int64_t size = 0;        // ids in all
  int64_t vocabulary = 0;  // ids are below it
  uint64_t content_hash = 0;
  std::shared_ptr<const MappedFile> file;  // that the ids are in
  // Copies ids [begin, begin + ids.size()), which are within the stream. The file is whole.
  std::function<void(int64_t begin, absl::Span<int64_t> ids)> copy;
};

// How many of `samples` samples train and validate: the last `fraction` of them validate, but of
// two or more at least one on each side. Without two, training may come out at 0 or less; the
// caller says so.
struct SplitSizes {
  int64_t training = 0;
  int64_t validation = 0;
};
SplitSizes SplitSamples(int64_t samples, double fraction);

// Cuts a stream into windows of sequence_length that do not overlap (next tokens: but for the one
// id that is a window's last target and the next one's first input). Errors: as OpenDataset.
absl::StatusOr<Dataset> CutIntoWindows(const TokenStream& stream, const DatasetOptions& options,
                                       const ModelSpec& model);

// Masks some of `input` in place and fills `target`: its ids there, kIgnoredTarget elsewhere.
// Devlin et al. 2019, arXiv:1810.04805, section 3.1. Deviation: a sample in which the draws chose
// no position gets one, so that no batch is without a target. Requires: input is not empty; all ids
// are below `vocabulary`, which is the mask id too.
void MaskTokens(uint64_t key, int64_t vocabulary, absl::Span<int64_t> input,
                absl::Span<int64_t> target);

// A sample's bytes as ids. Errors: InvalidArgument when there are not `count` of them.
absl::StatusOr<absl::Span<int64_t>> AsIds(absl::Span<std::byte> bytes, int64_t count);

// InvalidArgument unless `sample` is one of its split's.
absl::Status CheckSampleNumber(Split split, int64_t sample, const SplitSizes& sizes);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_TOKEN_WINDOWS_H_
