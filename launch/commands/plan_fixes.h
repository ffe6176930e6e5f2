#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_FIXES_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_FIXES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/commands/plan_study.h"

namespace siphon {

// A change of the job with which its plan fits, as planned with it.
struct PlanFix {
  std::vector<std::string> settings;  // "train.microbatch=2", each for a --set
  std::string meaning;                // "smaller microbatches"
  Nanos step_time;                    // at most: a plan of that job is searched for longer
  Bytes largest_peak = Bytes(0);      // of a worker
  Bytes host_peak = Bytes(0);
  // 0: the settings are all. Else also devices with so much, more than those of the job's topology
  // have: no setting is that.
  Bytes devices = Bytes(0);
};

// What was tried of a job that does not fit.
struct TriedFixes {
  std::vector<PlanFix> fixes;
  std::vector<std::vector<std::string>> in_vain;  // settings, with which it does not fit either
};

// Tries changes of the request, whose plan does not fit, each by planning it; the smallest first,
// one of each sort: planned anew where it is a plan file (memory.plan) that does not fit, or else
// by strategy auto, schedule 1f1b, smaller microbatches, more stages, smaller microbatches on more
// stages where neither does alone, more memory of a host that has a limit, fused attention, no
// dropout, an optimizer without moments, more capacity of the workers that lack it, or larger
// devices where the topology's have no more. Where strategy auto alone is not enough, microbatches,
// stages and capacity are tried with it, too, as far as they change less so. What is changed
// follows no plan file. Sizes are the least ones to within 1 %, or to a mebibyte: those with which
// any plan is found that fits; of what is returned the plan is a good one (kShortStep). Several
// sorts at once (RunTogether): `say` hears of each change before it is tried, from any thread.
TriedFixes FindFixes(PlanRequest request, const StudiedPlan& misfit,
                     const std::function<void(absl::string_view)>& say);

// The first of these that is `enough`; none where none is.
std::optional<PlanFix> FindFix(const PlanRequest& request, const StudiedPlan& misfit,
                               const std::function<void(absl::string_view)>& say,
                               const std::function<bool(const PlanFix&)>& enough);

// What is to be added to why it does not fit, where one of the fixes is more memory of the host.
std::string HostReason(const StudiedPlan& misfit, const std::vector<PlanFix>& fixes);

// "--set train.microbatch=2  (smaller microbatches; at most 93.6 ms a step, 5.78 MiB on
// the fullest worker)", or "needs devices of 40.2 GiB  (more than the 32.0 GiB of these; ...)".
std::string FixText(const PlanFix& fix);

// "smallest change that fits: " and FixText, "or:  " and the next, a line each, and "tried in vain:
// " and InVainText.
std::string FixesText(const TriedFixes& tried);

// "memory.strategy=auto, memory.strategy=auto with train.microbatch=1 and pipeline.stages=4".
std::string InVainText(const std::vector<std::vector<std::string>>& in_vain);

// "--set train.microbatch=2 --set pipeline.stages=4".
std::string SettingsText(const std::vector<std::string>& settings);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_FIXES_H_
