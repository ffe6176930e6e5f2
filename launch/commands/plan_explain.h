#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_EXPLAIN_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_EXPLAIN_H_

#include <optional>
#include <string>
#include <vector>

#include "launch/commands/plan_study.h"
#include "launch/output/timeline_page.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/units.h"

namespace siphon {

// What a group would cost in a step, by each way that there is for it, alone on its links. Copies:
// out and back again, once for each time that it leaves.
struct WayCosts {
  std::optional<Nanos> recompute;
  std::optional<Nanos> peers;  // over all links of its device at once; as planned where it lends
  std::optional<Nanos> host;
  std::optional<Nanos> nvme;
  // Why it cannot go to others' memory; empty: it can, or is there.
  std::string no_peers;
};

// A tensor group, how long nobody needs it, and what speaks for its choice.
struct ExplainedGroup {
  PlannedGroup planned;
  int live = 1;   // microbatches that keep it at once, or older weights
  int goes = 1;   // of those, how many go where it is placed at once, at most
  int times = 1;  // that it can leave in a step
  // Between the end of a forward and the begin of its backward; optimizer state: until the
  // optimizer step; weight versions: between the UPDATE that replaces them and their next use.
  Nanos shortest_gap;
  Nanos longest_gap;
  // The shortest with everything kept: so long it is without a use if no copy delays that. Of what
  // passes only; none: it takes no time.
  std::optional<Nanos> kept_gap;
  // Of activations: when nobody needs those of the first microbatch.
  Nanos unused_from;
  Nanos unused_until;
  WayCosts each;                     // of one leave
  bool steps_on_host = false;        // optimizer state: its layers do
  bool stays_for_host_step = false;  // on the host: where that refuses, only in a file on a drive
  int stream_buffers = kMostStreamBuffers;  // of its stage
  // Of activations that are swapped: gone behind their forward; in only with their backward.
  bool leaves_under_forward = false;
  bool comes_under_backward = false;
  std::string why;
};

// For how long a worker stands still for copies of a group that take so long, each time, which is
// what they take beyond `kept_gap`. The step need not be longer by as much. None: there is no such
// gap, as of what is there only while a pass is at its layers.
std::optional<Nanos> ExposedOf(const ExplainedGroup& group, std::optional<Nanos> copies);

struct ExplainedStage {
  StageId stage;
  WorkerId worker;
  DeviceId device;
  std::vector<ExplainedGroup> groups;
};

// One entry a stage; none where nothing fits. The first replica speaks for all.
std::vector<ExplainedStage> ExplainPlan(const StudiedPlan& studied);

// A table a stage, a row for each run of groups of neighbouring layers of which the same is said.
std::vector<PageTable> ExplainTables(const StudiedPlan& studied);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_EXPLAIN_H_
