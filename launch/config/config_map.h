#ifndef SIPHON_LAUNCH_CONFIG_CONFIG_MAP_H_
#define SIPHON_LAUNCH_CONFIG_CONFIG_MAP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launch/config/config_tree.h"
#include "launch/config/config_values.h"

namespace siphon {

// Strict reading of maps in files of our own that are no job files.

// InvalidArgument "<file>:<line>:<column>: <problem>".
absl::Status ConfigErrorAt(absl::string_view file, const ConfigNode& node,
                           absl::string_view problem);

// One key that a map may have, and what reads its value; errors of `read` have their place.
struct MapKey {
  std::string name;
  std::function<absl::Status(const ConfigNode& value)> read;
  bool required = false;
};

// A key with a single value, or a list of them, of a type that ReadValue knows. `file` and `into`
// must outlive it.
template <typename T>
MapKey ValueKey(absl::string_view file, absl::string_view name, T& into) {
  return {.name = std::string(name), .read = [file, name, &into](const ConfigNode& value) {
            const absl::Status read = ReadValue(value, into);
            return read.ok() ? read
                             : ConfigErrorAt(file, value, absl::StrCat(name, ": ", read.message()));
          }};
}

inline MapKey Required(MapKey key) {
  key.required = true;
  return key;
}

// Reads the map's values in the order of the file. `what` names the map: "a drive".
// Errors: InvalidArgument with its place for what is no map, for an unknown key (the nearest one is
// named), one that stands twice, a required one that is missing, and what `read` refuses.
absl::Status ReadConfigMap(absl::string_view file, const ConfigNode& map, absl::string_view what,
                           const std::vector<MapKey>& keys);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_CONFIG_MAP_H_
