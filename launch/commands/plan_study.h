#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_STUDY_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_STUDY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/commands/command.h"
#include "launch/commands/plan_footing.h"
#include "launch/config/job_config.h"
#include "planner/bounds/lower_bound.h"
#include "planner/drafts/planning_problem.h"
#include "planner/plan_text.h"
#include "planner/simulator/simulated_step.h"

namespace siphon {

// What becomes of jobs of which LeastMemory says that no plan fits. A search says more of why.
enum class HopelessJobs { kAreSearched, kAreRefused };

// What `siphon plan` is asked for.
struct PlanRequest {
  JobArguments job;
  std::string strategy;  // empty: the job's memory.strategy, or auto where it names none
  std::string profile;   // path; empty: none
  std::string device;    // name or path; empty: none
  PlanningNews news;     // of the search; none: nobody waits
  PlanningGoal goal = PlanningGoal::kShortestStep;
  bool quick = false;  // searches as for the largest problems, however small this one is
  bool bounds = true;  // StudiedPlan::bound is looked for
  StatedMemory devices = StatedMemory::kHolds;
  HopelessJobs hopeless = HopelessJobs::kAreSearched;
};

// A job with the memory plan that a strategy made for it.
struct StudiedPlan {
  JobConfig job;
  std::string strategy;
  // What the strategy changed in the job, "section.key=value": harmony makes stages and schedule.
  std::vector<std::string> settings;
  int64_t parameters = 0;
  int64_t tokens = 0;  // of a step, of all replicas together
  PlanningProblem problem;
  Bytes device_memory = Bytes(0);  // as PlanFooting has it
  PlanText plan;       // as it would be written; where nothing fits, with everything kept
  SimulatedStep kept;  // with everything kept, whether it fits or not
  std::optional<SimulatedStep> step;  // as planned; none: nothing fits
  std::optional<MapProof> map;        // of the plan, if its map was searched
  bool is_of_train = false;           // `siphon train` would find it for the job, by itself
  std::string misfit;                 // then this is why, in one line
  LowerBound bound;
  Nanos planning_time;

  const SimulatedStep& shown() const { return step.has_value() ? *step : kept; }
};

// The strategy that plans stages and schedule of a job too, and so is not in MemoryStrategies().
inline constexpr absl::string_view kHarmonyStrategy = "harmony";
inline constexpr absl::string_view kHarmonyHelp =
    "stages in packs, in Harmony's schedule, weights and optimizer state at the host between uses; "
    "searches stages, packs and microbatch groups";

// Loads the job and plans its memory; where it names a plan file (memory.plan), and `request` no
// strategy, the plan is that one. That nothing fits is no error. Errors: InvalidArgument and
// NotFound with the place in the job file, or with the known strategies.
absl::StatusOr<StudiedPlan> StudyPlan(const PlanRequest& request);

// Everything that StudyPlan refuses and that is known without planning: of a job that fits or not,
// in a moment. Errors: as StudyPlan.
absl::Status CheckRequest(const PlanRequest& request);

// Whether the plan is the one that the job names (memory.plan), not a strategy's.
bool FollowsFile(const PlanRequest& request, const JobConfig& job);
// The strategy that the job is planned by where it follows no plan file.
std::string StrategyOfRequest(const PlanRequest& request, const JobConfig& job);

// `request` with more overrides, "section.key=value" each.
PlanRequest WithSettings(PlanRequest request, const std::vector<std::string>& settings);

// [worker], replicas one after the other.
Bytes PeakOf(const SimulatedStep& step, size_t worker);
// What the drive, or device without a worker, of that name (HolderPeak) holds at most.
Bytes HeldBy(const StudiedPlan& studied, absl::string_view name);
// 0: no limit.
Bytes CapacityOf(const StudiedPlan& studied, size_t worker);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_STUDY_H_
