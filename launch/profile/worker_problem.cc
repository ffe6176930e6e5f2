#include "launch/profile/worker_problem.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "launch/plan_job/plan_rings.h"
#include "launch/profile/moving_state.h"
#include "launch/profile/predict_step.h"
#include "planner/memory/stage_passes.h"
#include "planner/round_up.h"
#include "planner/stage_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The most that one layer of a stage takes beyond its saved tensors, with its input and its output.
struct MostOfOneLayer {
  Bytes any_pass;  // computed again, or in a backward
  Bytes backward;
  Bytes input_backward;
  Bytes weight_backward;  // beyond what is kept for it, and no boundary
};

// The stage's backward, fullest elsewhere, may not show that. Where the backward is split, a worker
// is often fullest in a forward, beside what waits for W: then what a dropped layer makes on its
// way, and does not save, shows as well. So it does in 16 bits, where activations are half as large
// beside optimizer state that is on its way out.
MostOfOneLayer MostOf(const MemoryInputs& inputs, const PlanningProblem& problem,
                      const StageRange& layers) {
  const bool fullest_in_forward =
      SplitsBackward(problem.schedule) || inputs.precision != Precision::kFloat32;
  MostOfOneLayer most;
  for (int index = layers.begin; index < layers.end; ++index) {
    const LayerWorkspace workspace = WorkspaceOf(inputs, index);
    const LayerProfile& layer = problem.profile.layers[index];
    Bytes taken = std::max(workspace.forward, workspace.backward);
    if (fullest_in_forward) {
      taken = std::max({taken, workspace.input_backward, workspace.forward + SavedBytes(layer)});
    }
    const Bytes input = index > 0 ? problem.profile.layers[index - 1].boundary : Bytes(0);
    const Bytes boundaries = input + layer.boundary;
    most.any_pass = std::max(most.any_pass, taken + boundaries);
    most.backward = std::max(most.backward, workspace.backward + boundaries);
    most.input_backward = std::max(most.input_backward, workspace.input_backward + boundaries);
    most.weight_backward = std::max(most.weight_backward, workspace.weight_backward);
  }
  return most;
}

// Beside split ones.
bool HasWholeBackwards(const Schedule& schedule) {
  return absl::c_any_of(schedule.programs, [](const std::vector<Action>& program) {
    return absl::c_any_of(
        program, [](const Action& action) { return action.kind == ActionKind::kBackward; });
  });
}

// What the simulator gives no pass of the stage that is taken apart.
Bytes MissingOfOneLayer(const StageCost& cost, const MostOfOneLayer& taken,
                        const Schedule& schedule) {
  const Bytes backward = PassWorkspace(cost, ActionKind::kBackward);
  if (!SplitsBackward(schedule)) {
    return taken.any_pass - std::max(cost.forward_workspace, backward);
  }
  const Bytes input_backward = PassWorkspace(cost, ActionKind::kBackwardInput);
  const Bytes weight_backward = PassWorkspace(cost, ActionKind::kBackwardWeight);
  const Bytes missing =
      std::max({taken.any_pass - std::max({cost.forward_workspace, backward, input_backward}),
                taken.input_backward - input_backward, taken.weight_backward - weight_backward});
  return HasWholeBackwards(schedule) ? std::max(missing, taken.backward - backward) : missing;
}

// Scalars, as losses and norms of gradients, that no figure of a layer has; where the backward is
// split, up to 192 bytes of them were found at once.
constexpr Bytes kScalars{64};
constexpr Bytes kScalarsOfHalves{256};

// Where no ring takes what is sent, it stays with the sender until its receiver has it, however
// late that is.
void HoldUntilTaken(const PlannedJob& planned, PlanningProblem& problem) {
  const bool in_rings = TransportKindOf(planned.job.pipeline) == TransportKind::kRings;
  if (in_rings && RingsHoldBoundaries(planned.plan, planned.model)) return;
  problem.transport.sent = SentMemory::kUntilTaken;
  problem.transport.room = 0;
}

// Layer by layer, the simulator has what a pass sends on only from its last layer on. The room that
// the pass takes for itself was counted beside it.
void HoldBoundary(JobProblem& made) {
  PlanningProblem& problem = made.problem;
  for (size_t stage = 0; stage < made.plan.stages.size(); ++stage) {
    const StageCost& cost = made.plan.stages[stage].cost;
    // Where the backward is split, more of it is under way at once.
    const Bytes sent_on = SplitsBackward(problem.schedule)
                              ? (cost.input + cost.output) * 4 + kScalarsOfHalves
                              : std::max(cost.input, cost.output) + kScalars;
    Bytes& held =
        problem.held[problem.schedule.worker_of_stage[stage].value][MemoryKind::kWorkspace];
    held = std::max(held, sent_on);
  }
}

// Whether workers may park on a drive: the one that has memory.nvme_directory.
bool UsesDrive(const JobConfig& job, absl::string_view strategy) {
  return strategy == "nvme_swap" || !job.memory.nvme_directory.empty();
}

}  // namespace

void KeepDrivesOfWorkers(const JobConfig& job, absl::string_view strategy, Topology& topology) {
  const bool needs_drive = UsesDrive(job, strategy);
  std::set<int> servers;
  std::erase_if(topology.drives, [&](const NvmeDrive& drive) {
    return !needs_drive || !servers.insert(drive.server).second;
  });
}

absl::StatusOr<JobProblem> RoomiestProblemOfWorkers(const WorkersOfJob& job,
                                                    absl::string_view strategy) {
  const PlannedJob& planned = job.planned;
  const bool moves = strategy != kRecomputeStrategy;
  JobMachine machine{.costs = job.costs, .topology = job.throttled};
  ModelProfile run_times;
  if (job.measured != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(run_times, LayerTimes(planned, machine.costs));
    run_times = AtPace(std::move(run_times), planned.plan.partition, job.measured->stages);
    machine.costs.run_times = &run_times;
  }
  if (moves) machine.workers = WorkerMachine::kDevices;
  machine.needs_drive = moves && UsesDrive(planned.job, strategy);
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOfJob(planned, machine));
  PlanningProblem& problem = made.problem;
  HoldUntilTaken(planned, problem);
  if (moves) {
    KeepDrivesOfWorkers(planned.job, strategy, problem.topology);
  } else {
    problem.topology.drives.clear();
  }
  if (job.measured != nullptr && DeviceCount(problem.topology) > 0) {
    problem.topology = AtPace(std::move(problem.topology), job.measured->links);
    problem.mapping = job.measured->mapping;
  }
  if (!moves) return made;
  problem.granule = kCacheLine;
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs, MemoryInputsOf(planned));
  HoldWhatCannotMove(inputs, problem);
  return made;
}

absl::StatusOr<JobProblem> ProblemOfWorkers(const WorkersOfJob& job, absl::string_view strategy) {
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, RoomiestProblemOfWorkers(job, strategy));
  if (strategy != kRecomputeStrategy) HoldBoundary(made);
  return made;
}

void HoldForSingleLayers(const MemoryInputs& inputs, JobProblem& made) {
  PlanningProblem& problem = made.problem;
  for (size_t stage = 0; stage < made.plan.stages.size(); ++stage) {
    const StageCost& cost = made.plan.stages[stage].cost;
    const MostOfOneLayer taken = MostOf(inputs, problem, problem.partition.stages[stage]);
    const Bytes missing = MissingOfOneLayer(cost, taken, problem.schedule);
    MemoryByKind& held = problem.held[problem.schedule.worker_of_stage[stage].value];
    held[MemoryKind::kWorkspace] = std::max(held[MemoryKind::kWorkspace], missing);
  }
}

bool TakesPassesApart(absl::string_view strategy) {
  constexpr std::array<absl::string_view, 5> kApart = {kRecomputeStrategy, "mpress",
                                                       "weight_offload", "l2l", "auto"};
  return absl::c_linear_search(kApart, strategy);
}

}  // namespace siphon
