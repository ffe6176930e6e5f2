#ifndef SIPHON_LAUNCH_COMMANDS_FIX_SEARCH_H_
#define SIPHON_LAUNCH_COMMANDS_FIX_SEARCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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

// For whom changes are looked for, and until when.
struct FixQuery {
  const PlanRequest& request;
  const StudiedPlan& misfit;
  const std::function<void(absl::string_view)>& say;
  const std::function<bool(const PlanFix&)>& enough;
};

struct FixesOfSort {
  std::vector<PlanFix> fixes;
  std::optional<PlanFix> enough;  // that of them which was, and no other was tried then
  // What was tried as far as it goes, and does not fit: settings that belong together.
  std::vector<std::vector<std::string>> in_vain;
  // With which it was found to fit, each without the others; 0: none, or not of this sort.
  int64_t microbatch = 0;
  int64_t stages = 0;
  Bytes capacity = Bytes(0);
  // With strategy auto alone it does not fit, but may with so much (TriedFix::needs).
  bool auto_is_in_vain = false;
  Bytes auto_needs = Bytes(0);
};

// Tries changes of the sort, as FindFixes says of all. Requires: 0 <= sort < kFixSorts.
FixesOfSort SearchFixes(int sort, const FixQuery& query);

// Where `anew`, of the first sort, says that strategy auto alone is in vain: adds to `alone`, of
// this sort, smaller microbatches, more stages and more capacity together with it; only those that
// change less than what fits alone does, which they then precede.
void AddFixesWithAuto(int sort, const FixQuery& query, const FixesOfSort& anew, FixesOfSort& alone);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_FIX_SEARCH_H_
