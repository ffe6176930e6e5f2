#ifndef SIPHON_LAUNCH_DATA_SOURCES_H_
#define SIPHON_LAUNCH_DATA_SOURCES_H_

#include "launch/data/dataset.h"

namespace siphon {

// The functions that datasets.def names. Contracts as DataVocabulary and OpenDataset have them.
#define SIPHON_DATASET(name, vocabulary, open)                       \
  absl::StatusOr<int64_t> vocabulary(const DatasetOptions& options); \
  absl::StatusOr<Dataset> open(const DatasetOptions& options, const ModelSpec& model);
#include "launch/data/datasets.def"
#undef SIPHON_DATASET

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_SOURCES_H_
