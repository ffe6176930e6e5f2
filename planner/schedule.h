#ifndef SIPHON_PLANNER_SCHEDULE_H_
#define SIPHON_PLANNER_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/action.h"
#include "planner/ids.h"

namespace siphon {

// How many forwards DAPPLE lets stage s (of P) run before its first backward, with D its in-flight
// limit (DAPPLE, section 4.2).
enum class WarmUpPolicy {
  kA,  // min(P - s, D)
  kB,  // min(2 (P - s) - 1, D)
};

// What only some schedules ask for; the others refuse a value that is not the default.
struct ScheduleOptions {
  int in_flight_limit = 0;  // dapple's D; 0: no limit but the number of microbatches
  WarmUpPolicy warm_up = WarmUpPolicy::kA;
  std::vector<int> depth;  // pipedream: minibatches in flight of each stage; empty: P - s
  int forward_pack = 1;    // harmony: stages that a worker runs forward as one
  int backward_pack = 1;   // harmony: the same backward
  // harmony: microbatches through a pack before the next; 0: all. pipedream_2bw: microbatches
  // between two updates; 0: as many as there are stages.
  int microbatch_group = 0;
  int backward_group = 0;  // harmony: the same backward; 0: as forward
  std::string csv;         // csv: the text of the file
  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

// What a schedule builder is asked for. Stages = workers * chunks.
struct ScheduleShape {
  int workers = 1;
  int chunks = 1;  // stages a worker
  int microbatches = 1;
  ScheduleOptions options;
};

// Which weights a microbatch goes forward and backward with, where UPDATEs make new versions.
enum class WeightRule {
  kNewest,  // the newest of the stage at its forward (PipeDream's weight stashing)
  // The microbatches between two UPDATEs are a group, and group g goes by the weights that the
  // UPDATE of group g - 2 has made, on all stages: the first two groups by the initial ones
  // (PipeDream-2BW).
  kOneGroupBehind,
};

// programs[w] is what worker w does, strictly in order; worker_of_stage[s] says who holds stage s.
struct Schedule {
  int microbatches = 0;
  std::vector<WorkerId> worker_of_stage;
  std::vector<std::vector<Action>> programs;
  int replicas = 1;  // identical copies of all the programs, each on microbatches of its own
  WeightRule weight_rule = WeightRule::kNewest;  // means something with UPDATEs only
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

int WorkerCount(const Schedule& schedule);  // of one replica
int StageCount(const Schedule& schedule);
// The stages of a worker, ascending.
std::vector<StageId> StagesOf(const Schedule& schedule, WorkerId worker);
// Whether any backward is split into I and W.
bool SplitsBackward(const Schedule& schedule);

// One line a worker, cells separated by blanks: "0F0 0F1 (0F2;0B0)OVERLAP_F_B\n1F0 ...\n".
std::string ToString(const Schedule& schedule);
// The text of each cell of a program.
std::vector<std::string> CellTexts(const std::vector<Action>& program);
// Parses what ToString prints. The worker of a stage is the line that it stands in; a stage on two
// lines is an error. Errors: InvalidArgument with "line:column: ".
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);

// The same as comma-separated values in torch.distributed.pipelining's two formats: compute_only
// (empty cells are idle, and dropped) and compute_comms (whose UNSHARD, RESHARD and REDUCE_GRAD
// mean something for sharded replicas only, and are dropped).
std::string ToCsv(const Schedule& schedule);
absl::StatusOr<Schedule> ParseScheduleCsv(absl::string_view text);

// Largest number of microbatches between their F and their B (or W) at once, per worker, counted
// over (stage, microbatch) pairs, both ends included. gpipe: m; 1f1b: min(P - s, m).
std::vector<int> PeakLiveActivations(const Schedule& schedule);

// Largest number of weight versions that each stage holds at once: the newest, and the older ones
// that the weight rule still has a use for: kNewest, for the backward of a microbatch that has gone
// forward; kOneGroupBehind, for any microbatch that is not yet through. 1 without UPDATE.
std::vector<int> PeakWeightVersions(const Schedule& schedule);

// The microbatches in the order in which their weight gradients are added up at this stage.
std::vector<MicrobatchId> AccumulationOrder(const Schedule& schedule, StageId stage);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SCHEDULE_H_
