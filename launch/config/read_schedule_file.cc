#include "launch/config/read_schedule_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/units.h"

namespace siphon {
namespace {

// The longest schedules that can be built have 10 million cells.
constexpr int64_t kMostBytes = int64_t{256} << 20;

}  // namespace

absl::StatusOr<std::string> ReadScheduleFile(const JobConfig& job) {
  if (job.pipeline.schedule != "csv") return std::string();
  const std::string& path = job.pipeline.schedule_file;
  const auto refuse = [&](absl::string_view problem) {
    return ConfigError(job, "pipeline.schedule_file", absl::StrCat(path, ": ", problem));
  };
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return refuse("no such file");
  if (!std::filesystem::is_regular_file(path, error)) return refuse("is no file");
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return refuse(error.message());
  if (size > kMostBytes) {
    return refuse(absl::StrCat("has ", FormatBytes(Bytes(size)), "; a schedule has at most ",
                               FormatBytes(Bytes(kMostBytes))));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return refuse("cannot be read");
  return text;
}

}  // namespace siphon
