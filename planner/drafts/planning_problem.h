#ifndef SIPHON_PLANNER_DRAFTS_PLANNING_PROBLEM_H_
#define SIPHON_PLANNER_DRAFTS_PLANNING_PROBLEM_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/memory/memory_kind.h"
#include "planner/memory_plan.h"
#include "planner/model_profile.h"
#include "planner/schedule.h"
#include "planner/simulator/simulate.h"
#include "planner/stage_partition.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// What a device map is scored by.
enum class MappingScore {
  kStepTime,  // simulated
  kSwapTime,  // the longest D2D swap (MPress, III.C; its score is the reciprocal)
};

// What lenders have to lend.
enum class LendingRule {
  // What they do not need at their own fullest, and for every owner the most that it ever has away,
  // as if that were always there: holds however long copies take.
  kPeaks,
  // Where that is too little: what they do not need at each moment of the simulated step.
  kOverTime,
};

// What a search is for.
enum class PlanningGoal {
  kShortestStep,
  // For who compares jobs: without what takes longest and gains least, which is to search for a
  // large problem's slow step once more, and to prove maps.
  kShortStep,
  // For who asks no more than whether anything fits: `auto` ends where it has a plan that does.
  kAnyThatFits,
};

// GPT-25.5B in 8 to 24 GB of a V100: steps 1 to 4 % faster for 57 to 99 s of planning, not 2 to 5.
inline constexpr int kEffortForUsers = 4;
inline constexpr int kLeastEffort = 0;

// Hears, while a plan is looked for, what is being done, and the step of the best plan so far that
// fits; 0: none does yet. For someone who waits: changes no plan.
using PlanningNews = std::function<void(absl::string_view doing, Nanos step)>;

// Calls run(0) to run(count - 1), several at once or one after the other, and returns when all have
// ended. For searches that have nothing in common: changes no plan.
struct SideBySide {
  // None: one after the other.
  std::function<void(int count, const std::function<void(int)>& task)> run;
  int threads = 1;  // that it has, at most
};

// The facts and earlier decisions from which a memory plan is made.
//
// Invariant (CheckPlanningProblem): the partition is of the profile's layers, the schedule has its
// stages, capacities and held bytes name its workers, the topology has devices enough.
struct PlanningProblem {
  ModelProfile profile;  // at the job's microbatch
  StagePartition partition;
  Schedule schedule;  // no memory actions; lowered, or compute actions only
  Topology topology;  // without devices: workers of one machine, connected by `transport`
  TransportCosts transport;
  CoreSharing cores;
  std::vector<Bytes> capacity;           // [worker]; 0: no limit
  std::vector<MemoryByKind> held;        // [worker], beside what the profile says; empty: nothing
  Nanos host_step;                       // optimizer step of all layers on the host; 0: not known
  Bytes granule{64};                     // stripes are whole multiples of it
  std::optional<DeviceMapping> mapping;  // as the user wants it; otherwise it is searched
  MappingScore score = MappingScore::kStepTime;
  // kPeaks: a plan has to keep its promises at any speed of computing and copying (PromisedPeaks),
  // as for workers that only follow their programs. kOverTime: as simulated.
  LendingRule lending = LendingRule::kOverTime;
  PlanningGoal goal = PlanningGoal::kShortestStep;
  // Of a plan that whoever asks has already: one that takes as long need not be finished.
  std::optional<Nanos> has_step;
  // Of `auto`: how many times the simulations of search_effort.h, and how many times at most where
  // a large problem's plan comes out slow. kLeastEffort: as few as for the largest problems.
  int effort = 1;
  int most_effort = 1;  // kEffortForUsers where somebody trains with the plan
  PlanningNews news;    // none: nobody waits
  SideBySide side_by_side;
};

// What a search for the device map knows of the maps that it did not take.
struct MapProof {
  MappingScore score = MappingScore::kStepTime;
  // By `score`, of the plan as it was when its map was chosen: what there was no room for, and the
  // time; and below which no map is.
  Bytes missing;
  Nanos time;
  Bytes least_missing;
  Nanos least_time;       // of maps that have no more missing than least_missing
  bool proven = false;    // no map is better
  int64_t evaluated = 0;  // maps whose score was calculated
  int64_t bounded = 0;    // maps of some workers of which all completions were bounded at once
  friend bool operator==(const MapProof&, const MapProof&) = default;
};

// A memory plan, what it makes of the schedule, and what the simulator says of it.
struct PlannedStep {
  MemoryPlan memory;
  DeviceMapping mapping;
  Schedule schedule;  // with memory actions
  SimulatedStep simulated;
  std::optional<MapProof> map;  // none: the map was given, or not searched
};

// Errors: InvalidArgument naming what does not belong together.
absl::Status CheckPlanningProblem(const PlanningProblem& problem);

// What the simulator is asked for a plan; the schedule is that of `problem` with the plan's
// actions (LowerMemoryPlan).
SimulationInput SimulationOf(const PlanningProblem& problem, const DeviceMapping& mapping,
                             MemoryPlan memory, Schedule schedule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_PLANNING_PROBLEM_H_
