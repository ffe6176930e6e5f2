#include "planner/simulator/simulate.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/check_residency.h"
#include "planner/find_deadlock.h"
#include "planner/marked_grid.h"
#include "planner/schedule_index.h"
#include "planner/simulator/check_simulation_input.h"
#include "planner/simulator/graph/step_graph.h"
#include "planner/simulator/simulate_times.h"
#include "planner/simulator/step_memory.h"
#include "planner/simulator/step_runs.h"
#include "planner/simulator/step_timelines.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

SchedulePurpose PurposeOf(const Schedule& schedule) {
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      if (IsCompute(action.kind) && action.kind != ActionKind::kForward) {
        return SchedulePurpose::kTraining;
      }
    }
  }
  return SchedulePurpose::kForwardOnly;
}

// The validator tells who waits for whom better than the place where the clock stopped.
absl::Status Deadlock(const SimulationInput& input, const ScheduleIndex& index,
                      const StepGraph& step, const TaskRun& run) {
  const Schedule& schedule = input.schedule;
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(schedule, PurposeOf(schedule), input.memory));
  SIPHON_RETURN_IF_ERROR(FindDeadlock(schedule, index, WaitsFor::kCompute));
  for (const TaskId task : run.stuck) {
    const TaskOrigin& origin = step.origins[task.value];
    if (origin.place < 0) continue;
    const ActionPosition where{origin.worker % WorkerCount(schedule), origin.place};
    return ScheduleError(schedule, where,
                         absl::StrCat("worker ", origin.worker, " can never go on with ",
                                      ToString(schedule.programs[where.worker][where.index]),
                                      ": after ", FormatNanos(run.end_time), " of the step, ",
                                      run.stuck.size(), " tasks wait for each other"));
  }
  return absl::InternalError("tasks that belong to no action are stuck");
}

struct Details {
  BooksDetail memory = BooksDetail::kCurves;
  LaneDetail lanes = LaneDetail::kWithLanes;
};

// Requires: CheckResidency.
absl::StatusOr<StepTimes> SimulateChecked(const SimulationInput& input, const ScheduleIndex& index,
                                          const Details& details, StepRuns& runs) {
  SIPHON_ASSIGN_OR_RETURN(StepGraph built, BuildStepGraph(input, index, runs.TakeSpace()));
  const auto& [step, run] = runs.Run(std::move(built));
  if (!run.stuck.empty()) return Deadlock(input, index, step, run);
  SIPHON_ASSIGN_OR_RETURN(StepMemory memory, KeepMemoryBooks(input, step, run, details.memory));
  SimulatedStep result = StepTimelines(input.schedule, step, run, details.lanes);
  result.memory = std::move(memory.curves);
  result.other_memory = std::move(memory.other_curves);
  result.peak = std::move(memory.peaks);
  result.host_peak = memory.host_peak;
  result.other_peaks = std::move(memory.other_peaks);
  const std::vector<int> live = PeakLiveActivations(input.schedule);
  for (int replica = 0; replica < input.schedule.replicas; ++replica) {
    result.peak_live_activations.insert(result.peak_live_activations.end(), live.begin(),
                                        live.end());
  }
  return StepTimes{.step = std::move(result), .lent = std::move(memory.lent)};
}

absl::StatusOr<SimulatedStep> SimulateOnDevices(const SimulationInput& input) {
  SIPHON_ASSIGN_OR_RETURN(const ScheduleIndex index, ScheduleIndex::Build(input.schedule));
  SIPHON_RETURN_IF_ERROR(CheckResidency(input.schedule, input.memory));
  StepRuns runs;
  SIPHON_ASSIGN_OR_RETURN(StepTimes simulated, SimulateChecked(input, index, {}, runs));
  return std::move(simulated.step);
}

// With device w for worker w where no map is given.
SimulationInput Placed(SimulationInput input) {
  for (int worker = 0; worker < WorkerCount(input.schedule) * input.schedule.replicas; ++worker) {
    input.device_of_worker.emplace_back(worker);
  }
  return input;
}

}  // namespace

absl::StatusOr<SimulatedStep> Simulate(const SimulationInput& input) {
  SIPHON_RETURN_IF_ERROR(CheckSimulationInput(input));
  if (input.device_of_worker.empty()) return SimulateOnDevices(Placed(input));
  return SimulateOnDevices(input);
}

absl::StatusOr<StepTimes> SimulateTimes(const SimulationInput& input, LendingDetail lending) {
  SimulationSpace space;
  return SimulateTimes(input, lending, space);
}

absl::StatusOr<StepTimes> SimulateTimes(const SimulationInput& input, LendingDetail lending,
                                        SimulationSpace& space) {
  SIPHON_RETURN_IF_ERROR(CheckSimulationInput(input));
  SIPHON_ASSIGN_OR_RETURN(
      const ScheduleIndex index,
      ScheduleIndex::Build(input.schedule, ScheduleIndex::Actions::kWithoutGroups));
  const Details details{
      .memory = lending == LendingDetail::kLent ? BooksDetail::kLent : BooksDetail::kPeaks,
      .lanes = LaneDetail::kWithoutLanes};
  if (!input.device_of_worker.empty()) return SimulateChecked(input, index, details, space.runs);
  return SimulateChecked(Placed(input), index, details, space.runs);
}

SimulationInput EqualStages(Schedule schedule, const StageCost& cost) {
  SimulationInput input{.schedule = std::move(schedule)};
  input.stages.assign(input.schedule.worker_of_stage.size(), cost);
  if (input.stages.empty()) return input;
  for (StageCost& stage : input.stages) stage.input = cost.output;
  input.stages.front().input = Bytes(0);
  input.stages.back().output = Bytes(0);
  return input;
}

SimulationInput UnitStages(Schedule schedule) {
  return EqualStages(std::move(schedule), {.forward = Nanos(1),
                                           .input_backward = Nanos(1),
                                           .weight_backward = Nanos(1),
                                           .stash = Bytes(1),
                                           .kept_for_weights = Bytes(1)});
}

}  // namespace siphon
