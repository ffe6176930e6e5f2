#include "launch/plan_job/model_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Without a job-wide size (synthetic data, no vocabulary given) models get one id a byte, as text
// has.
constexpr int64_t kDefaultVocabulary = 256;

}  // namespace

absl::StatusOr<ModelOptions> ModelOptionsOf(const JobConfig& job, int64_t data_ids) {
  const ModelConfig& model = job.model;
  ModelOptions options{.kind = model.kind,
                       .layers = model.layers,
                       .hidden = model.hidden,
                       .heads = model.heads,
                       .vocabulary = model.vocabulary,
                       .sequence_length = job.data.sequence_length,
                       .dropout = model.dropout,
                       .tie_embeddings = model.tie_embeddings,
                       .flash_attention = model.flash_attention,
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
  const bool names_key = absl::StartsWith(problem, "model.") && end != absl::string_view::npos &&
                         !absl::StrContains(problem.substr(0, end), ' ');
  if (!names_key) return ConfigError(job, "model.kind", problem);
  return ConfigError(job, problem.substr(0, end), problem.substr(end + 2));
}

}  // namespace siphon
