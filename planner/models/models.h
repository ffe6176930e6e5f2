#ifndef SIPHON_PLANNER_MODELS_MODELS_H_
#define SIPHON_PLANNER_MODELS_MODELS_H_

#include "absl/status/statusor.h"
#include "planner/model_spec.h"

namespace siphon {

// One builder for each row of the table. Errors: as BuildModelSpec.
#define SIPHON_MODEL(kind, builder) absl::StatusOr<ModelSpec> builder(const ModelOptions& options);
#define SIPHON_PLANNED_MODEL SIPHON_MODEL
#include "planner/models/models.def"
#undef SIPHON_PLANNED_MODEL
#undef SIPHON_MODEL

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODELS_MODELS_H_
