#include "launch/config/read_schedule_file.h"

#include "absl/strings/string_view.h"
#include "launch/config/read_text_file.h"

namespace siphon {

absl::StatusOr<std::string> ReadScheduleFile(const JobConfig& job) {
  if (job.pipeline.schedule != "csv") return std::string();
  const std::string& path = job.pipeline.schedule_file;
  const auto refuse = [&](absl::string_view problem) {
    return ConfigError(job, "pipeline.schedule_file", problem);
  };
  auto text = ReadTextFile(path, "schedule");
  if (!text.ok()) return refuse(text.status().message());
  return text;
}

}  // namespace siphon
