#include "launch/plan_job/model_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Without a job-wide size (synthetic data, no vocabulary given) models get one id a byte, as text
// has.
constexpr int64_t kDefaultVocabulary = 256;

// What LibTorch's fused kernels on CUDA take as it is: flash in 16 bits, memory-efficient in
// float32. Of heads of other widths they save padded copies, or there is none; and what the latter
// saves of each token has room for a multiple of 32 tokens (ATen/native/transformers/cuda). A plan
// would know neither.
bool CudaFusesAttention(const JobConfig& job) {
  constexpr int64_t kWidths = 8;
  constexpr int64_t kWidest = 256;
  constexpr int64_t kTokens = 32;
  if (job.model.heads <= 0) return true;
  const int64_t width = job.model.hidden / job.model.heads;
  if (width % kWidths != 0 || width > kWidest) return false;
  return job.train.precision != "fp32" || job.data.sequence_length % kTokens == 0;
}

}  // namespace

absl::StatusOr<ModelOptions> ModelOptionsOf(const JobConfig& job, int64_t data_ids) {
  const ModelConfig& model = job.model;
  const bool fuses = job.pipeline.backend != "cuda" || CudaFusesAttention(job);
  ModelOptions options{.kind = model.kind,
                       .layers = model.layers,
                       .hidden = model.hidden,
                       .heads = model.heads,
                       .vocabulary = model.vocabulary,
                       .sequence_length = job.data.sequence_length,
                       .dropout = model.dropout,
                       .tie_embeddings = model.tie_embeddings,
                       .flash_attention = model.flash_attention && fuses,
                       .activation = model.activation};
  const int64_t special_ids = model.kind == "bert" ? 1 : 0;  // the mask
  const int64_t needed = data_ids == 0 ? 0 : data_ids + special_ids;
  if (options.vocabulary == 0) {
    options.vocabulary = needed > 0 ? needed : kDefaultVocabulary + special_ids;
  } else if (options.vocabulary < needed) {
    return ConfigError(
        job, "model.vocabulary",
        absl::StrCat(options.vocabulary, " ids, but the data has ", data_ids, " different ones",
                     special_ids > 0 ? " and bert needs a mask id" : "", "; at least ", needed,
                     " are needed"));
  }
  return options;
}

absl::Status ModelError(const JobConfig& job, const absl::Status& status) {
  const absl::string_view problem = status.message();
  const size_t end = problem.find(": ");
  const bool is_key = absl::StartsWith(problem, "model.") || absl::StartsWith(problem, "data.");
  const bool names_key =
      is_key && end != absl::string_view::npos && !absl::StrContains(problem.substr(0, end), ' ');
  if (!names_key) return ConfigError(job, "model.kind", problem);
  return ConfigError(job, problem.substr(0, end), problem.substr(end + 2));
}

}  // namespace siphon
