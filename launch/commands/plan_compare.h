#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_COMPARE_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_COMPARE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/commands/plan_study.h"
#include "launch/output/timeline_page.h"
#include "planner/units.h"

namespace siphon {

// What a strategy, or a system that we only compare with, makes of a job.
struct ComparedPlan {
  std::string name;
  std::optional<Nanos> step_time;  // for the job's batch; none: it does not fit
  double tokens_per_second = 0;
  std::optional<double> gap;  // above the lower bound; none for other systems
  Bytes recomputed;           // as in the table of workers
  Bytes parked;               // with other devices, the host and drives
  std::string remark;         // why it does not fit, or what the system does
};

// The job by each strategy, harmony included; and, on a server, by each of MemoryBaselines(), which
// run the whole model on every device. `planned` is the job as it was planned: its costs are those
// of all. Fastest first, then those that do not fit. Several at once (RunTogether): `say` hears of
// each before it is tried, from any thread.
std::vector<ComparedPlan> ComparePlans(PlanRequest request, const StudiedPlan& planned,
                                       const std::function<void(absl::string_view)>& say);

// A row each; the last column has words.
PageTable ComparisonTable(const std::vector<ComparedPlan>& plans);

// Whether only ComparePlans and siphon plan --published know this name.
bool IsBaseline(absl::string_view strategy);
// "zero_offload, zero_infinity, ...".
std::string BaselineNames();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_COMPARE_H_
