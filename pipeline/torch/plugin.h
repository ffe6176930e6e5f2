#ifndef SIPHON_PIPELINE_TORCH_PLUGIN_H_
#define SIPHON_PIPELINE_TORCH_PLUGIN_H_

// A user's own model as a shared object, for `model.kind: plugin` with `model.library: libmine.so`.
// One of its sources says
//
//   absl::StatusOr<siphon::Model> BuildMyModel(const siphon::ModelOptions& options) { ... }
//   SIPHON_PLUGIN(BuildMyModel)
//
// and it links Siphon::torch. `options` is the job file's model section.

#include <string>

#include "absl/status/statusor.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/layers.h"

// What a plugin and the program that loads it must agree on. Raise the number with any change to
// Model, ModelSpec or what they consist of.
#define SIPHON_PLUGIN_INTERFACE "Siphon plugin interface 3, LibTorch " TORCH_VERSION

#define SIPHON_PLUGIN(build_function)                                                           \
  extern "C" const char* SiphonPluginInterface() { return SIPHON_PLUGIN_INTERFACE; }            \
  extern "C" void SiphonBuildModel(const siphon::ModelOptions* options,                         \
                                   absl::StatusOr<siphon::Model>* model) {                      \
    *model = siphon::CallTorch("building the model", [&] { return build_function(*options); }); \
  }

namespace siphon {

// Loads `library` and builds its model. The library stays loaded until the process ends: the
// model's functions are in it. Errors: InvalidArgument, naming the library, if the file is missing
// or not a library, lacks what SIPHON_PLUGIN defines, was built for another interface (both are
// named), or its model is invalid; the plugin's own error if it returns one.
absl::StatusOr<Model> LoadPluginModel(const std::string& library, const ModelOptions& options);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_PLUGIN_H_
