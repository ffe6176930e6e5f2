#ifndef SIPHON_PLANNER_COMMON_HEADERS_H_
#define SIPHON_PLANNER_COMMON_HEADERS_H_

// What most sources of the project include, precompiled. Only what changes never: sources name what
// they use themselves.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#endif  // SIPHON_PLANNER_COMMON_HEADERS_H_
