#include "launch/output/cache_directory.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace siphon {
namespace {

absl::string_view Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string CacheDirectory() {
  if (const auto cache = Environment("XDG_CACHE_HOME"); !cache.empty()) {
    return absl::StrCat(cache, "/siphon");
  }
  if (const auto home = Environment("HOME"); !home.empty()) {
    return absl::StrCat(home, "/.cache/siphon");
  }
  return "";
}

}  // namespace siphon
