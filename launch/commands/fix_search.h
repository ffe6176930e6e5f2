#ifndef SIPHON_LAUNCH_COMMANDS_FIX_SEARCH_H_
#define SIPHON_LAUNCH_COMMANDS_FIX_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_study.h"

namespace siphon {

// Sorts of changes, in the order in which they are shown: planned anew or strategy auto, schedule,
// microbatches and stages, the host's memory, attention, dropout, optimizer, capacity.
inline constexpr int kFixSorts = 8;

// What the host's memory is changed by.
inline constexpr absl::string_view kHostCapacityKey = "memory.host_capacity";

struct FixesOfSort {
  std::vector<PlanFix> fixes;
  bool has_enough = false;  // the last of them was enough, and no other was tried
};

// Tries changes of the sort, as FindFixes says of all. Requires: 0 <= sort < kFixSorts.
FixesOfSort SearchFixes(int sort, const PlanRequest& request, const StudiedPlan& misfit,
                        const std::function<void(absl::string_view)>& say,
                        const std::function<bool(const PlanFix&)>& enough);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_FIX_SEARCH_H_
