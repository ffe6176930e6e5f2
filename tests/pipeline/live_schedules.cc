#include "tests/pipeline/live_schedules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Worker 0: "0F0,0F1,,0I0,0W0,0I1,0W1".
std::string CsvOf(const ScheduleShape& shape) {
  std::string text;
  for (int stage = 0; stage < shape.workers; ++stage) {
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      absl::StrAppend(&text, stage, "F", microbatch, ",");
    }
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      absl::StrAppend(&text, ",", stage, "I", microbatch, ",", stage, "W", microbatch);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

bool UsesFile(const ScheduleEntry& entry) {
  return std::find(entry.options.begin(), entry.options.end(), "csv") != entry.options.end();
}

}  // namespace

std::vector<ScheduleEntry> LiveSchedules() {
  std::vector<ScheduleEntry> live;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    if (entry.update != WeightUpdate::kAsynchronous) live.push_back(entry);
  }
  return live;
}

std::vector<std::string> LiveScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : LiveSchedules()) names.push_back(entry.name);
  return names;
}

std::optional<Schedule> BuildLive(const ScheduleEntry& entry, const ScheduleShape& shape) {
  ScheduleShape asked = shape;
  if (UsesFile(entry)) {
    if (shape.chunks != 1) return std::nullopt;
    asked.options.csv = CsvOf(shape);
  }
  const absl::StatusOr<Schedule> schedule = BuildSchedule(entry.name, asked);
  if (!schedule.ok() || schedule->replicas != 1) return std::nullopt;
  return *schedule;
}

std::string TestNameOf(const std::string& name) {
  std::string letters = name;
  for (char& letter : letters) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return letters;
}

}  // namespace siphon
