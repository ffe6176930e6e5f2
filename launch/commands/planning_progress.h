#ifndef SIPHON_LAUNCH_COMMANDS_PLANNING_PROGRESS_H_
#define SIPHON_LAUNCH_COMMANDS_PLANNING_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// "planning: improving the best start, 46.9 s a step so far ... 12 s"; `detail` may be empty,
// `step` and `seconds` 0: not said.
std::string ProgressLine(absl::string_view doing, absl::string_view detail, Nanos step,
                         int seconds);

// What is being planned and for how long, on standard error: on a terminal each line in place of
// the one before, elsewhere a line every few seconds.
class PlanningProgress {
 public:
  // `second`: what counts as one; tests have less time.
  explicit PlanningProgress(std::chrono::milliseconds second = std::chrono::seconds(1));
  ~PlanningProgress();
  PlanningProgress(const PlanningProgress&) = delete;
  PlanningProgress& operator=(const PlanningProgress&) = delete;

  void Say(absl::string_view doing);
  // Says what a plan's search is at. Must not be called after this is gone.
  PlanningNews News();

 private:
  void Tick();
  void Print() const;  // under mutex_

  const bool terminal_;
  const std::chrono::milliseconds second_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::string doing_, detail_;
  Nanos step_;
  int seconds_ = 0;
  std::thread ticker_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLANNING_PROGRESS_H_
