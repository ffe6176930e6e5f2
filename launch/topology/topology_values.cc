#include "launch/topology/topology_values.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launch/config/config_map.h"
#include "launch/config/config_values.h"

namespace siphon {

absl::Status ReadRate(absl::string_view file, const ConfigNode& node, absl::string_view name,
                      BytesPerSecond& rate) {
  if (node.kind != ConfigNode::Kind::kScalar) {
    return ConfigErrorAt(
        file, node, absl::StrCat(name, ": is ", Describe(node), "; write a rate such as 25GB/s"));
  }
  const absl::StatusOr<BytesPerSecond> read = ParseRate(node.text);
  if (!read.ok())
    return ConfigErrorAt(file, node, absl::StrCat(name, ": ", read.status().message()));
  constexpr int64_t kMost = 1'000'000'000'000'000;  // 1 PB/s; products of it fit into 64 bits
  if (read->value > kMost) {
    return ConfigErrorAt(file, node,
                         absl::StrCat(name, ": is ", FormatRate(*read), "; at most 1000TB/s"));
  }
  rate = *read;
  return absl::OkStatus();
}

absl::Status ReadCount(absl::string_view file, const ConfigNode& node, absl::string_view name,
                       int64_t least, int64_t most, int64_t& count) {
  const absl::Status read = ReadValue(node, count);
  if (!read.ok()) return ConfigErrorAt(file, node, absl::StrCat(name, ": ", read.message()));
  if (count >= least && count <= most) return absl::OkStatus();
  return ConfigErrorAt(
      file, node,
      absl::StrCat(name, ": is ", count, "; must be at least ", least, " and at most ", most));
}

absl::Status ReadListOf(absl::string_view file, const ConfigNode& node, absl::string_view name,
                        absl::string_view what) {
  if (node.kind == ConfigNode::Kind::kList) return absl::OkStatus();
  return ConfigErrorAt(file, node,
                       absl::StrCat(name, ": is ", Describe(node), "; write a list of ", what));
}

}  // namespace siphon
