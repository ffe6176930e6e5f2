#include "launch/data/dataset.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/data/sources.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct DataKind {
  absl::string_view name;
  absl::StatusOr<int64_t> (*vocabulary)(const DatasetOptions&);
  absl::StatusOr<Dataset> (*open)(const DatasetOptions&, const ModelSpec&);
};

constexpr DataKind kKinds[] = {
#define SIPHON_DATASET(name, vocabulary, open) {#name, vocabulary, open},
#include "launch/data/datasets.def"
#undef SIPHON_DATASET
};

absl::StatusOr<DataKind> FindKind(const std::string& name) {
  for (const DataKind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  return absl::NotFoundError(absl::StrCat(
      "data.kind '", name, "' is not known; known: ", absl::StrJoin(KnownDataKinds(), ", ")));
}

absl::Status CheckOptions(const DatasetOptions& options) {
  if (options.sequence_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.sequence_length ", options.sequence_length, "; must be at least 1"));
  }
  // Written so that NaN fails too.
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("data.validation_fraction ",
                                                   options.validation_fraction,
                                                   "; must be at least 0 and below 1"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> KnownDataKinds() {
  std::vector<std::string> names;
  for (const DataKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

absl::StatusOr<int64_t> DataVocabulary(const DatasetOptions& options) {
  SIPHON_ASSIGN_OR_RETURN(const DataKind kind, FindKind(options.kind));
  return kind.vocabulary(options);
}

absl::StatusOr<Dataset> OpenDataset(const DatasetOptions& options, const ModelSpec& model) {
  SIPHON_ASSIGN_OR_RETURN(const DataKind kind, FindKind(options.kind));
  SIPHON_RETURN_IF_ERROR(CheckOptions(options));
  return kind.open(options, model);
}

}  // namespace siphon
