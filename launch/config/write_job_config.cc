// The two texts that are made of the table of keys: a job as YAML, and the help.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "launch/config/job_schema.h"
#include "launch/config/load_job_config.h"

namespace siphon {

std::string WriteJobConfig(const JobConfig& job) {
  std::string text;
  absl::string_view section;
  for (const JobKey& key : JobSchema()) {
    const std::string value = key.write(job);
    if (value.empty()) continue;
    if (key.section != section) {
      section = key.section;
      absl::StrAppend(&text, section, ":\n");
    }
    absl::StrAppend(&text, "  ", key.key, ": ", value, "\n");
  }
  return text;
}

namespace {

// As one would write it: quotes are a matter of YAML.
std::string DefaultOf(const JobKey& key) {
  const std::string value = key.write(JobConfig());
  return value.empty() ? "-" : absl::StrReplaceAll(value, {{"\"", ""}});
}

}  // namespace

std::string JobConfigHelp(const KnownNames& known) {
  // Columns as wide as their widest cell, but long lists of names do not push the rest away.
  constexpr size_t kWidestValues = 44;
  size_t key_width = 0, value_width = 0, default_width = 0;
  for (const JobKey& key : JobSchema()) {
    key_width = std::max(key_width, key.key.size());
    value_width = std::max(value_width, std::min(key.values(known).size(), kWidestValues));
    default_width = std::max(default_width, DefaultOf(key).size());
  }
  std::string text;
  absl::string_view section;
  for (const JobKey& key : JobSchema()) {
    if (key.section != section) {
      absl::StrAppend(&text, section.empty() ? "" : "\n", key.section, ":\n");
      section = key.section;
    }
    absl::StrAppendFormat(&text, "  %-*s  %-*s  %-*s  %s\n", key_width, key.key, value_width,
                          key.values(known), default_width, DefaultOf(key), key.meaning);
  }
  return text;
}

}  // namespace siphon
