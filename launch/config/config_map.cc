#include "launch/config/config_map.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "launch/config/closest_name.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status UnknownKey(absl::string_view file, const ConfigNode& key,
                        const std::vector<MapKey>& keys) {
  std::vector<std::string> known;
  known.reserve(keys.size());
  for (const MapKey& one : keys) known.push_back(one.name);
  const std::string closest = ClosestName(key.text, known);
  return ConfigErrorAt(
      file, key,
      absl::StrCat("unknown key ", QuoteForMessage(key.text), "; ",
                   closest.empty() ? absl::StrCat("known: ", absl::StrJoin(known, ", "))
                                   : absl::StrCat("did you mean '", closest, "'?")));
}

}  // namespace

absl::Status ConfigErrorAt(absl::string_view file, const ConfigNode& node,
                           absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", node.line, ":", node.column, ": ", problem));
}

absl::Status ReadConfigMap(absl::string_view file, const ConfigNode& map, absl::string_view what,
                           const std::vector<MapKey>& keys) {
  if (map.kind != ConfigNode::Kind::kMap) {
    return ConfigErrorAt(
        file, map,
        absl::StrCat("is ", Describe(map), "; ", what, " is written as 'key: value' lines"));
  }
  std::map<absl::string_view, int> lines;
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const ConfigNode& key = map.keys[i];
    const auto found = std::find_if(keys.begin(), keys.end(),
                                    [&](const MapKey& known) { return known.name == key.text; });
    if (found == keys.end()) return UnknownKey(file, key, keys);
    const auto [first, is_new] = lines.emplace(found->name, key.line);
    if (!is_new) {
      return ConfigErrorAt(file, key,
                           absl::StrCat(key.text, ": stands a second time, first in line ",
                                        first->second, "; remove one of them"));
    }
    SIPHON_RETURN_IF_ERROR(found->read(map.items[i]));
  }
  for (const MapKey& key : keys) {
    if (!key.required || lines.contains(key.name)) continue;
    return ConfigErrorAt(file, map, absl::StrCat(what, " has no '", key.name, "'; it needs one"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
