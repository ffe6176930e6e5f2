#ifndef SIPHON_LAUNCH_CONFIG_CONFIG_VALUES_H_
#define SIPHON_LAUNCH_CONFIG_CONFIG_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launch/config/config_tree.h"
#include "planner/status.h"
#include "planner/units.h"

namespace siphon {

// For each type that a key can have: reading it strictly from a node, writing it so that it reads
// back as the same value, and its name in help texts.
//
// Errors of ReadValue: InvalidArgument "<what is wrong>; <what would be right>", without the place.

absl::Status ReadValue(const ConfigNode& node, int64_t& value);
absl::Status ReadValue(const ConfigNode& node, double& value);
absl::Status ReadValue(const ConfigNode& node, bool& value);
absl::Status ReadValue(const ConfigNode& node, std::string& value);
absl::Status ReadValue(const ConfigNode& node, Bytes& value);
absl::Status ReadValue(const ConfigNode& node, Nanos& value);
absl::Status ReadValue(const ConfigNode& node, BytesPerSecond& value);

std::string WriteValue(int64_t value);
std::string WriteValue(double value);
std::string WriteValue(bool value);
std::string WriteValue(const std::string& value);
std::string WriteValue(Bytes value);
std::string WriteValue(Nanos value);
std::string WriteValue(BytesPerSecond value);

inline absl::string_view TypeName(int64_t) { return "whole number"; }
inline absl::string_view TypeName(double) { return "number"; }
inline absl::string_view TypeName(bool) { return "true or false"; }
inline absl::string_view TypeName(const std::string&) { return "text"; }
inline absl::string_view TypeName(Bytes) { return "size (512MiB)"; }
inline absl::string_view TypeName(Nanos) { return "time (20s)"; }
inline absl::string_view TypeName(BytesPerSecond) { return "rate (25GB/s)"; }

// "a list", "a section", "nothing", or the scalar in quotes: what stands there instead of a value.
std::string Describe(const ConfigNode& node);

// A list of values; a single one is a list of one.
template <typename T>
absl::Status ReadValue(const ConfigNode& node, std::vector<T>& values) {
  std::vector<T> read;
  if (node.kind != ConfigNode::Kind::kList) {
    read.emplace_back();
    SIPHON_RETURN_IF_ERROR(ReadValue(node, read.back()));
  }
  for (const ConfigNode& item : node.items) {
    read.emplace_back();
    SIPHON_RETURN_IF_ERROR(
        Annotate(ReadValue(item, read.back()), absl::StrCat("item ", read.size())));
  }
  values = std::move(read);
  return absl::OkStatus();
}

template <typename T>
std::string WriteValue(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    absl::StrAppend(&text, text.empty() ? "[" : ", ", WriteValue(value));
  }
  return text.empty() ? "" : text + "]";
}

template <typename T>
std::string TypeName(const std::vector<T>&) {
  return absl::StrCat("list of ", TypeName(T()));
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_CONFIG_VALUES_H_
