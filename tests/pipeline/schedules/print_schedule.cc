// Prints schedules as comma-separated values, for compare_with_torch.py.
//
// Reads lines "FORMAT NAME WORKERS CHUNKS MICROBATCHES" from standard input, where FORMAT is
// compute_only or compute_comms, and answers each with "ok LINES" and that many lines, or with
// "refused MESSAGE".
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::StatusOr<std::string> Print(const std::string& format, const std::string& name,
                                  const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, BuildSchedule(name, shape));
  if (format == "compute_comms") {
    SIPHON_ASSIGN_OR_RETURN(schedule, InsertCommunication(std::move(schedule)));
  }
  return ToCsv(schedule);
}

}  // namespace
}  // namespace siphon

int main() {
  std::string format;
  std::string name;
  siphon::ScheduleShape shape;
  while (std::cin >> format >> name >> shape.workers >> shape.chunks >> shape.microbatches) {
    const absl::StatusOr<std::string> csv = siphon::Print(format, name, shape);
    if (csv.ok()) {
      std::printf("ok %d\n%s", static_cast<int>(std::count(csv->begin(), csv->end(), '\n')),
                  csv->c_str());
    } else {
      std::printf("refused %s\n", std::string(csv.status().message()).c_str());
    }
  }
}
