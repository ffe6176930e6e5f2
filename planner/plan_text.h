#ifndef SIPHON_PLANNER_PLAN_TEXT_H_
#define SIPHON_PLANNER_PLAN_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/layer_cost.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/sent_memory.h"
#include "planner/stage_cost.h"
#include "planner/stage_partition.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// What a plan file says of one stage.
struct PlanStage {
  WorkerId worker;
  StageRange layers;
  std::string names;  // of the layers, for people
  StageCost cost;
  std::vector<LayerCost> layer_costs;  // of `layers`; empty: the stage is one piece
  Nanos host_step;                     // its optimizer step, where computed on the host
  friend bool operator==(const PlanStage&, const PlanStage&) = default;
};

// What a plan file says of one worker.
struct PlanWorker {
  Bytes capacity;       // 0: no limit
  Bytes communication;  // buffers of the transport that count as this worker's memory
  Bytes slack;          // what its allocator takes beyond the bytes asked for
  friend bool operator==(const PlanWorker&, const PlanWorker&) = default;
};

// A parameter that several stages use.
struct PlanSharing {
  std::string parameter;
  std::vector<StageId> stages;  // ascending; of each use
  friend bool operator==(const PlanSharing&, const PlanSharing&) = default;
};

// What the planner foretold when it wrote the file, for people and for comparison: an edit of the
// file leaves it as it was, and who trains by the file foretells it anew.
struct PlanPrediction {
  Nanos step_time;          // 0: nothing was foretold
  Nanos lower_bound;        // no plan for these facts is faster; 0: not known
  std::vector<Bytes> peak;  // [worker], replicas one after the other; may be empty
  // [worker], where groups are computed again as their second choice (PeaksComputingAgain); empty:
  // as `peak`.
  std::vector<Bytes> peak_at_most;
  friend bool operator==(const PlanPrediction&, const PlanPrediction&) = default;
};

// A plan file as values: the facts and decisions of a job that a simulation needs, and that people
// read, edit and compare.
//
// Invariant of what ParsePlanText returns: stages, workers and programs belong together (stages[s]
// names the worker whose program has the actions of stage s), global_batch is microbatch *
// training.microbatches * training.replicas, workers are on different devices that exist, and
// groups lie within their stages, are cut into stripes whole, and go where such tensors can; what
// lends to a device of the topology is linked with it.
// Whether the programs can run is for ValidateSchedule and Simulate to say.
struct PlanText {
  std::string model;     // kind
  std::string schedule;  // name
  std::string strategy;  // name of the one that made `memory`; may be empty
  int64_t microbatch = 1;
  int64_t global_batch = 1;
  std::string costs;   // where they come from: kUnitCosts, "measured on ...", "calculated for ..."
  Nanos link_latency;  // of a message between two workers
  BytesPerSecond link_rate;  // 0: a message takes no time beyond the latency
  BytesPerSecond host_rate;  // of all workers to the host together, and back; 0: no limit
  // Of workers' own copies of a message, before it is sent and after it came; 0: they take no part.
  BytesPerSecond copy_rate;
  // Of a core that copies tensors to other memory and back, beside what workers compute; 0: copies
  // take no core.
  BytesPerSecond swap_rate;
  int message_room = 0;  // messages that may be sent before the first of them is received
  SentMemory sent = SentMemory::kUntilSent;
  // Gradients that leave while a pass is at other layers are held until the worker waits for the
  // copy (SimulationInput::frees_at_waits): so plans for workers count them, whose copies may take
  // any time.
  bool frees_at_waits = false;
  // What 1, 2, ... workers get computed at the same time, in thousandths of one alone, the last
  // entry for more; empty: none slows another one.
  std::vector<int64_t> cores_together;
  PlanPrediction predicted;
  Topology topology;      // without devices: workers of one machine, joined as above
  DeviceMapping mapping;  // empty: worker w on device w
  MemoryPlan memory;      // empty where all is kept and every step is computed on its device
  std::vector<PlanWorker> workers;
  std::vector<PlanStage> stages;
  std::vector<PlanSharing> shared_parameters;
  Schedule training;    // lowered or compute actions only
  Schedule evaluation;  // forward only; may be empty
  friend bool operator==(const PlanText&, const PlanText&) = default;
};

// PlanText::costs where nothing was measured or calculated: F, I and W take kUnitTime each.
inline constexpr absl::string_view kUnitCosts = "unit";
inline constexpr Nanos kUnitTime{1'000'000};

// `name` without what would end it in a plan file.
std::string NameForPlan(absl::string_view name);

// The plan as text: sections "job", "predicted", "topology", "worker 0", "stage 0", "shared
// parameters", "training", "evaluation"; one "key: value" a line, one line a program. What stands
// behind a # is a comment. Equal plans give equal texts, and ParsePlanText(ToString(plan)) == plan.
// Requires: names that NameForPlan leaves as they are; layer_costs and memory have the sizes that
// they say.
std::string ToString(const PlanText& plan);

// Parses what ToString prints; keys of times and sizes that are 0 may be missing, blank lines and
// comments may stand anywhere. Errors: InvalidArgument "line:column: what is wrong; what would be
// right". Complexity: linear in the text's length.
absl::StatusOr<PlanText> ParsePlanText(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_TEXT_H_
