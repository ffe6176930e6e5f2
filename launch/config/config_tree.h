#ifndef SIPHON_LAUNCH_CONFIG_CONFIG_TREE_H_
#define SIPHON_LAUNCH_CONFIG_CONFIG_TREE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// A YAML document as plain values with their places; nothing is interpreted yet.
struct ConfigNode {
  enum class Kind { kEmpty, kScalar, kList, kMap };
  Kind kind = Kind::kEmpty;
  std::string text;     // of a scalar
  bool quoted = false;  // the scalar stood in quotes, so it is text and no number
  int line = 1;         // both count from 1
  int column = 1;
  std::vector<ConfigNode> keys;   // of a map, scalars all; duplicates are kept
  std::vector<ConfigNode> items;  // of a list, or a map's values, one for each key
};

// Limits under which a file is read at all; a job file has some hundred lines and two levels.
inline constexpr int kLargestConfigBytes = 1 << 20;
inline constexpr int kDeepestConfig = 8;

// Reads one YAML document. A byte order mark, CRLF line ends and tabs between words are harmless.
// Time grows linearly with the text's length, and no input makes it recurse deeply.
//
// Errors: InvalidArgument "<name>:<line>:<column>: <problem>; <what would be right>" for text that
// is too large, not UTF-8, has control characters or tabs in the indentation, is not YAML, is
// nested too deeply, has anchors, aliases, tags, keys that are no words, or a second document.
absl::StatusOr<ConfigNode> ParseConfigTree(absl::string_view text, absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_CONFIG_TREE_H_
