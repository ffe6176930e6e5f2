#ifndef SIPHON_LAUNCH_RUN_JOB_MODEL_FACTORY_H_
#define SIPHON_LAUNCH_RUN_JOB_MODEL_FACTORY_H_

#include <functional>

#include "absl/status/statusor.h"
#include "planner/model_spec.h"

namespace siphon {

struct Model;  // pipeline/torch/layers.h

// Makes the model that is trained, of the options in the job file's `model` section.
using ModelFactory = std::function<absl::StatusOr<Model>(const ModelOptions& options)>;

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_MODEL_FACTORY_H_
