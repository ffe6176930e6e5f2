#ifndef SIPHON_LAUNCH_COMMANDS_PLANNING_PROGRESS_H_
#define SIPHON_LAUNCH_COMMANDS_PLANNING_PROGRESS_H_

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// What is being planned, on a terminal only, each line in place of the one before.
class PlanningProgress {
 public:
  void Say(absl::string_view doing) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\033[K%s ...", std::string(doing).c_str());
    std::fflush(stderr);
  }
  ~PlanningProgress() {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLANNING_PROGRESS_H_
