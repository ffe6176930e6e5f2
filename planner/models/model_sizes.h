#ifndef SIPHON_PLANNER_MODELS_MODEL_SIZES_H_
#define SIPHON_PLANNER_MODELS_MODEL_SIZES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/model_spec.h"

namespace siphon {

enum class AttentionHeads { kUsed, kUnused };

// A model deeper than this is a slip of the pen, and its list of layers alone would fill the
// memory.
inline constexpr int64_t kMostLayers = 100'000;

// Checks what a model of tokens needs: positive sizes, hidden divisible by heads where these are
// used, dropout in [0, 1), a known activation, and that bytes of all parameters, of all boundaries
// and the FLOPs of one sample stay in 63 bits. Errors: InvalidArgument that starts with the job's
// key ("model.hidden: ...").
absl::Status CheckModelSizes(const ModelOptions& options, AttentionHeads heads);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODELS_MODEL_SIZES_H_
