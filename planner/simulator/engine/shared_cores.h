#ifndef SIPHON_PLANNER_SIMULATOR_SHARED_CORES_H_
#define SIPHON_PLANNER_SIMULATOR_SHARED_CORES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "planner/units.h"

namespace siphon {

// What tasks that run at the same time get done together, in thousandths of what one gets done
// alone: together[n - 1] of n tasks, the last entry of all larger numbers. Two cores that do not
// disturb each other are {1000, 2000}. Empty: each task has a core of its own.
using CoreSharing = std::vector<int64_t>;

// Tasks that run on the cores of one machine, all of them equally fast at any moment (egalitarian
// processor sharing: Kleinrock, Queueing Systems, volume 2, section 4.4), as the system's scheduler
// shares cores among workers. Since all advance alike, one number, the progress of a task that has
// run since the beginning, says when each of them ends.
//
// Exact as long as at most 16 tasks run; ends are rounded up to whole nanoseconds.
class SharedCores {
 public:
  // Requires: entries are positive.
  explicit SharedCores(CoreSharing together) : together_(std::move(together)) {}

  // All that runs.
  struct State {
    absl::uint128 progress = 0;
    Nanos since;
    std::vector<std::pair<absl::uint128, int>> running;  // (progress at its end, task)
  };
  State Save() const { return {progress_, since_, running_}; }
  // Goes on from there.
  void Restore(State state);

  // Requires: work > 0, and `now` never decreases from call to call, nor passes NextEnd().
  void Begin(int task, Nanos work, Nanos now);
  // Begun, and not taken as ended yet.
  bool IsRunning(int task) const;
  // When the next task ends if none begins before; none when none runs.
  std::optional<Nanos> NextEnd() const;
  // The tasks that have ended by now, the one with the least work left first; of equal ones, the
  // one with the lower number. Valid until the next call.
  const std::vector<int>& TakeEnded(Nanos now);

 private:
  using End = std::pair<absl::uint128, int>;  // progress, task

  int64_t Rate() const;
  void AdvanceTo(Nanos now);

  const CoreSharing together_;
  absl::uint128 progress_ = 0;
  Nanos since_;               // `progress_` is of this time
  std::vector<End> running_;  // a heap, the least first
  std::vector<int> ended_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_SHARED_CORES_H_
