#ifndef SIPHON_LAUNCH_PROFILE_LAYER_KEYS_H_
#define SIPHON_LAUNCH_PROFILE_LAYER_KEYS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/model_profile.h"

namespace siphon {

// A number of a layer in a profile file: one of the two members is set.
struct LayerKey {
  absl::string_view name;
  Nanos LayerProfile::*time = nullptr;
  Bytes LayerProfile::*size = nullptr;
  bool only_if_known = false;  // left out where it is 0
};

// All of them, in the order of the file.
const std::vector<LayerKey>& LayerKeys();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_LAYER_KEYS_H_
