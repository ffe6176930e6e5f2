#include "launch/commands/known_plans.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launch/checkpoint/checksum.h"
#include "launch/config/load_job_config.h"
#include "launch/output/text_file.h"
#include "launch/process/core_count.h"
#include "launch/process/machine_memory.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "plan-";
constexpr absl::string_view kSuffix = ".txt";

// Without the keys that no plan depends on.
JobConfig WhatIsPlanned(JobConfig job) {
  job.launch = {};
  job.output = {};
  job.checkpoint = {};
  job.model.init_from.clear();
  const TrainConfig any;
  job.train.steps = any.steps;
  job.train.learning_rate = any.learning_rate;
  job.train.schedule = any.schedule;
  job.train.warmup_steps = any.warmup_steps;
  job.train.final_learning_rate_fraction = any.final_learning_rate_fraction;
  job.train.weight_decay = any.weight_decay;
  job.train.beta1 = any.beta1;
  job.train.beta2 = any.beta2;
  job.train.seed = any.seed;
  return job;
}

// Size and time of the last change; of what is no file nothing.
std::string StateOfFile(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return "";
  const fs::file_time_type time = fs::last_write_time(path, error);
  return absl::StrCat(path, " ", size, " ", time.time_since_epoch().count(), "\n");
}

std::string KeyOf(const JobConfig& job) {
  std::string key = WriteJobConfig(WhatIsPlanned(job));
  for (const std::string& path :
       {job.pipeline.profile, job.pipeline.schedule_file, job.topology.name, job.model.library,
        job.data.path, std::string("/proc/self/exe")}) {
    key += StateOfFile(path);
  }
  absl::StrAppend(&key, CoreCount(), " cores, ", MachineMemory().value, " bytes\n");
  // As a comment of a plan file.
  return absl::StrCat("# ", absl::StrReplaceAll(absl::StripSuffix(key, "\n"), {{"\n", "\n# "}}),
                      "\n");
}

// What is free on a drive, and how fast that is, is another thing each time.
bool MayUseDrive(const JobConfig& job) {
  return !job.memory.nvme_directory.empty() || job.memory.strategy == "nvme_swap";
}

bool IsPlan(const fs::path& file) {
  const std::string name = file.filename().string();
  return absl::StartsWith(name, kPrefix) && absl::EndsWith(name, kSuffix);
}

void ForgetOldest(const std::string& directory, int most) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> plans;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (IsPlan(entry.path())) plans.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::sort(plans.begin(), plans.end());
  for (size_t plan = 0; plan + static_cast<size_t>(most) < plans.size(); ++plan) {
    fs::remove(plans[plan].second, error);  // another run may have done so
  }
}

}  // namespace

std::string KnownPlans::FileOf(const std::string& key) const {
  return absl::StrCat(directory_, "/", kPrefix, ChecksumText(Checksum(key)), kSuffix);
}

std::string KnownPlans::Find(const JobConfig& job) const {
  if (directory_.empty() || !job.memory.known_plans || MayUseDrive(job)) return "";
  const std::string key = KeyOf(job);
  const auto text = ReadTextFileIfThere(FileOf(key));
  return text.ok() && absl::StartsWith(*text, key) ? text->substr(key.size()) : "";
}

void KnownPlans::Keep(const JobConfig& job, const std::string& plan, int most) const {
  if (directory_.empty() || !job.memory.known_plans || MayUseDrive(job)) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  const std::string key = KeyOf(job);
  if (!WriteTextFile(FileOf(key), absl::StrCat(key, plan)).ok()) return;
  ForgetOldest(directory_, most);
}

}  // namespace siphon
