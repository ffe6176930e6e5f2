// Says of records of a device (recorder.cc) by which engines tensors were copied, and how much of
// that was beside kernels.
//
//   copy_report FILE...     a file for each process
//
// Exit code 1 where tensors went otherwise than by copy engines, beside kernels (copy_overlap.h); 2
// for files that are no records.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/gpu/activity/copy_overlap.h"
#include "tests/gpu/activity/device_activity.h"

namespace siphon {
namespace {

int Report(const std::vector<std::string>& paths) {
  std::vector<CopySummary> all;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    std::vector<DeviceActivity> activities;
    for (std::string line; std::getline(file, line);) {
      const auto activity = ParseActivity(line);
      // Of a process that was killed, the last line may be cut.
      if (!activity.ok() && file.eof()) break;
      if (!activity.ok()) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(),
                     std::string(activity.status().message()).c_str());
        return 2;
      }
      activities.push_back(*activity);
    }
    const std::vector<CopySummary> summaries = SummariseCopies(activities);
    std::printf("%s: %zu records\n%s\n", path.c_str(), activities.size(),
                TableOf(summaries).c_str());
    all.insert(all.end(), summaries.begin(), summaries.end());
  }
  const absl::Status checked = CheckCopies(all);
  std::printf("%s\n", checked.ok() ? "tensors are copied by copy engines, beside kernels"
                                   : std::string(checked.message()).c_str());
  return checked.ok() ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: copy_report FILE...\n");
    return 2;
  }
  return siphon::Report(std::vector<std::string>(argv + 1, argv + argc));
}
