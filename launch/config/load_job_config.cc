#include "launch/config/load_job_config.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/check_job_config.h"
#include "launch/config/closest_name.h"
#include "launch/config/config_tree.h"
#include "launch/config/config_values.h"
#include "launch/config/job_schema.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::string FullName(const JobKey& key) { return absl::StrCat(key.section, ".", key.key); }

std::vector<std::string> SectionNames() {
  std::vector<std::string> names;
  for (const JobKey& key : JobSchema()) {
    if (names.empty() || names.back() != key.section) names.push_back(key.section);
  }
  return names;
}

std::vector<std::string> KeyNames(absl::string_view section) {
  std::vector<std::string> names;
  for (const JobKey& key : JobSchema()) {
    if (key.section == section) names.push_back(key.key);
  }
  return names;
}

const JobKey* FindKey(absl::string_view section, absl::string_view name) {
  for (const JobKey& key : JobSchema()) {
    if (key.section == section && key.key == name) return &key;
  }
  return nullptr;
}

absl::Status ErrorAt(absl::string_view place, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", problem));
}

absl::Status UnknownSection(absl::string_view place, absl::string_view section) {
  const std::vector<std::string> sections = SectionNames();
  const std::string closest = ClosestName(section, sections);
  if (!closest.empty()) {
    return ErrorAt(place, absl::StrCat("unknown section ", QuoteForMessage(section),
                                       "; did you mean '", closest, "'?"));
  }
  for (const JobKey& key : JobSchema()) {
    if (key.key != section) continue;
    return ErrorAt(place, absl::StrCat("unknown section ", QuoteForMessage(section),
                                       "; it is a key, write it as ", FullName(key)));
  }
  return ErrorAt(place, absl::StrCat("unknown section ", QuoteForMessage(section),
                                     "; known: ", absl::StrJoin(sections, ", ")));
}

// Another section's key of the same name is a better guess than this section's nearest one.
absl::Status UnknownKey(absl::string_view place, absl::string_view section,
                        absl::string_view name) {
  const std::vector<std::string> names = KeyNames(section);
  const std::string problem = absl::StrCat(section, ": unknown key ", QuoteForMessage(name), "; ");
  for (const JobKey& key : JobSchema()) {
    if (key.key == name) {
      return ErrorAt(place, absl::StrCat(problem, "did you mean ", FullName(key), "?"));
    }
  }
  const std::string closest = ClosestName(name, names);
  if (!closest.empty()) {
    return ErrorAt(place, absl::StrCat(problem, "did you mean '", closest, "'?"));
  }
  return ErrorAt(place, absl::StrCat(problem, "known: ", absl::StrJoin(names, ", ")));
}

// Fills a job from one document or override.
class JobReader {
 public:
  JobReader(std::string name, const KnownNames& known) : name_(std::move(name)), known_(known) {}

  absl::Status ReadFile(const ConfigNode& root, JobConfig& job) const {
    if (root.kind == ConfigNode::Kind::kEmpty) {
      return ErrorAt(name_ + ":1:1", absl::StrCat("the file is empty; write sections such as ",
                                                  absl::StrJoin(SectionNames(), ", ")));
    }
    if (root.kind != ConfigNode::Kind::kMap) {
      return ErrorAt(PlaceOf(root), absl::StrCat("the file is ", Describe(root),
                                                 "; write sections, such as 'model:'"));
    }
    SIPHON_RETURN_IF_ERROR(CheckDuplicates(root, "section"));
    for (size_t i = 0; i < root.keys.size(); ++i) {
      SIPHON_RETURN_IF_ERROR(ReadSection(root.keys[i], root.items[i], job));
    }
    return absl::OkStatus();
  }

 private:
  std::string PlaceOf(const ConfigNode& node) const {
    return absl::StrCat(name_, ":", node.line, ":", node.column);
  }

  absl::Status CheckDuplicates(const ConfigNode& map, absl::string_view what) const {
    std::map<absl::string_view, const ConfigNode*> seen;
    for (const ConfigNode& key : map.keys) {
      const auto [first, is_new] = seen.emplace(key.text, &key);
      if (is_new) continue;
      return ErrorAt(PlaceOf(key), absl::StrCat(what, " ", QuoteForMessage(key.text),
                                                " stands here a second time, first in line ",
                                                first->second->line, "; remove one of them"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSection(const ConfigNode& name, const ConfigNode& section,
                           JobConfig& job) const {
    if (!absl::c_linear_search(SectionNames(), name.text)) {
      return UnknownSection(PlaceOf(name), name.text);
    }
    if (section.kind == ConfigNode::Kind::kEmpty) return absl::OkStatus();  // all commented out
    if (section.kind != ConfigNode::Kind::kMap) {
      return ErrorAt(PlaceOf(section),
                     absl::StrCat(name.text, ": is ", Describe(section),
                                  "; write 'key: value' lines under '", name.text, ":'"));
    }
    SIPHON_RETURN_IF_ERROR(CheckDuplicates(section, absl::StrCat(name.text, ": key")));
    for (size_t i = 0; i < section.keys.size(); ++i) {
      const ConfigNode& key = section.keys[i];
      const ConfigNode& value = section.items[i];
      const JobKey* row = FindKey(name.text, key.text);
      if (row == nullptr) return UnknownKey(PlaceOf(key), name.text, key.text);
      // A value that is not there has no place of its own.
      const bool empty = value.kind == ConfigNode::Kind::kEmpty;
      const std::string place = PlaceOf(empty ? key : value);
      SIPHON_RETURN_IF_ERROR(
          Annotate(row->read(value, known_, job), absl::StrCat(place, ": ", FullName(*row))));
      job.origins[FullName(*row)] = place;
    }
    return absl::OkStatus();
  }

  std::string name_;
  const KnownNames& known_;
};

absl::Status Override(absl::string_view text, const KnownNames& known, JobConfig& job) {
  const size_t equals = text.find('=');
  const absl::string_view full = text.substr(0, equals);
  const std::string place = absl::StrCat("--set ", full);
  const size_t dot = full.find('.');
  if (equals == absl::string_view::npos || dot == absl::string_view::npos) {
    return ErrorAt(absl::StrCat("--set ", text), "write --set section.key=value");
  }
  const absl::string_view section = full.substr(0, dot);
  if (!absl::c_linear_search(SectionNames(), section)) return UnknownSection(place, section);
  const JobKey* row = FindKey(section, full.substr(dot + 1));
  if (row == nullptr) return UnknownKey(place, section, full.substr(dot + 1));
  const absl::string_view value = text.substr(equals + 1);
  ConfigNode node;
  if (row->is_text && !value.empty()) {
    node.kind = ConfigNode::Kind::kScalar;
    node.text = std::string(value);
  } else {
    SIPHON_ASSIGN_OR_RETURN(node, ParseConfigTree(value, place));
  }
  SIPHON_RETURN_IF_ERROR(Annotate(row->read(node, known, job), place));
  job.origins[FullName(*row)] = place;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path,
                     ": cannot be opened; write the path of a job file, such as "
                     "configs/jobs/quickstart.yaml"));
  }
  // One byte more than allowed shows that there is more; a larger file is not read.
  std::string text(kLargestConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be read; a job file is a regular file"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

absl::StatusOr<JobConfig> LoadJobConfig(const std::string& path,
                                        const std::vector<std::string>& overrides,
                                        const ConfigLimits& limits) {
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseJobConfig(text, path, overrides, limits);
}

absl::StatusOr<JobConfig> ParseJobConfig(const std::string& text, const std::string& name,
                                         const std::vector<std::string>& overrides,
                                         const ConfigLimits& limits) {
  JobConfig job;
  SIPHON_ASSIGN_OR_RETURN(const ConfigNode root, ParseConfigTree(text, name));
  SIPHON_RETURN_IF_ERROR(JobReader(name, limits.known).ReadFile(root, job));
  for (const std::string& override_text : overrides) {
    SIPHON_RETURN_IF_ERROR(Override(override_text, limits.known, job));
  }
  SIPHON_RETURN_IF_ERROR(CheckJobConfig(job, limits));
  return job;
}

absl::StatusOr<JobConfig> ParsePastJob(const std::string& text, const std::string& name) {
  return ParseJobConfig(text, name, {}, {.known = {.purpose = JobPurpose::kStudy}});
}

}  // namespace siphon
