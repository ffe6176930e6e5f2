#include "launch/run/follow/replan.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/fitting_step.h"
#include "launch/profile/host_use.h"
#include "launch/profile/measured_costs.h"
#include "launch/profile/moving_state.h"
#include "launch/profile/predict_step.h"
#include "launch/profile/worker_problem.h"
#include "launch/run/job/run_machine.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/parking/parking_routes.h"
#include "launch/run/parking/topology_ways.h"
#include "pipeline/carried_state.h"
#include "planner/lowering/make_groups.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"

namespace siphon {
namespace {

// In hundredths of a step.
constexpr int64_t kLeastGain = 5;

DeviceMapping MappingOf(const PlanText& plan) {
  if (!plan.mapping.device_of_worker.empty()) return plan.mapping;
  return IdentityMapping(static_cast<int>(plan.workers.size()));
}

std::vector<LinkPace> PacesOfLinks(const PlanText& plan, const MeasuredRun& measured) {
  std::vector<LinkPace> paces;
  if (plan.topology.devices.empty()) return paces;
  const TopologyWays ways(plan.topology);
  const DeviceMapping mapping = MappingOf(plan);
  for (size_t worker = 0; worker < measured.links.size(); ++worker) {
    const std::vector<PlaceUse>& links = measured.links[worker];
    const DeviceId owner = mapping.device_of_worker[worker];
    for (const PlaceUse& used : links) {
      // The host's link is there even where nothing goes.
      const double pace = PaceOfLink(ways, owner, used, static_cast<int>(links.size()) - 1);
      paces.push_back({owner, used.place, pace, used.use.bytes});
    }
  }
  return paces;
}

absl::StatusOr<MeasuredCosts> CostsOf(const PreparedJob& prepared, const MeasuredRun& measured) {
  SIPHON_ASSIGN_OR_RETURN(const SimulatedStep predicted, PredictStep(prepared.plan_text));
  const auto stages = static_cast<int>(prepared.plan_text.stages.size());
  return MeasuredCosts{.stages = PacesOf(BusyByStage(predicted.workers, stages), measured.stages),
                       .links = PacesOfLinks(prepared.plan_text, measured),
                       .mapping = MappingOf(prepared.plan_text)};
}

// By time alone: what fits was decided otherwise, with more care.
absl::StatusOr<Nanos> StepTimeOf(PlanningProblem problem, const DeviceMapping& mapping,
                                 const MemoryPlan& memory, const Schedule& schedule) {
  problem.capacity.clear();
  problem.topology.host_memory = Bytes(0);
  for (NvmeDrive& drive : problem.topology.drives) drive.capacity = Bytes(0);
  for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(0);
  SIPHON_ASSIGN_OR_RETURN(const SimulatedStep step,
                          Simulate(SimulationOf(problem, mapping, memory, schedule)));
  return step.step_time;
}

// Groups know how long it takes to compute them again.
MemoryPlan AtTimesOf(const PlanningProblem& problem, MemoryPlan plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (PlannedGroup& planned : plan.stages[stage].groups) {
      TensorGroup& group = planned.group;
      if (group.kind != GroupKind::kActivations) continue;
      group.recompute = GroupOf(problem.profile, problem.partition.stages[stage], group.kind,
                                group.layers, group.first_tensors)
                            .recompute;
    }
  }
  return plan;
}

// Carried state takes memory of the host (of several, as if all of it went through each), beside
// what is there before or afterwards. Requires: the
// plan in force is the job's.
absl::Status CheckHostRoom(const PreparedJob& prepared, const FollowedPlan& in_force,
                           const LiveStep& next) {
  const Bytes room = HostCapacityOf(prepared);
  if (room == Bytes(0)) return absl::OkStatus();
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs,
                          MemoryInputsOf({prepared.job, prepared.model.spec, prepared.plan}));
  std::set<StageId> on_host = StagesSteppedOnHost(in_force.memory);
  on_host.merge(StagesSteppedOnHost(next.step.memory));
  const Bytes carried = CarriedAtMost(StateAway(in_force.memory, in_force.schedule),
                                      StateAway(next.step.memory, next.step.schedule)) +
                        HostStateBytes(next.problem, inputs, on_host);
  const auto taken = [&](const std::vector<WorkerParking>& parking,
                         const std::vector<Bytes>& host_steps) {
    return FullestHost(HostUseOfServers(parking, host_steps, prepared.plan_text.topology,
                                        prepared.plan_text.mapping))
        .total();
  };
  const Bytes needed = carried + std::max(taken(prepared.parking, prepared.host_steps),
                                          taken(next.parking, next.host_steps));
  if (needed <= room) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "carrying training state to where a better plan has it takes ", FormatBytes(needed),
      " of the host, memory.host_capacity is ", FormatBytes(room)));
}

// The plan in force by some costs.
struct Explained {
  MeasuredCosts costs;
  PlanningProblem problem;
  Nanos now;
  Nanos off;  // from what was measured
};

absl::StatusOr<Explained> Explain(WorkersOfJob workers, const FollowedPlan& in_force,
                                  Nanos measured, MeasuredCosts costs) {
  workers.measured = &costs;
  SIPHON_ASSIGN_OR_RETURN(JobProblem made,
                          ProblemOfWorkers(workers, workers.planned.job.memory.strategy));
  Explained explained{.costs = std::move(costs), .problem = std::move(made.problem)};
  const MemoryPlan memory = AtTimesOf(explained.problem, in_force.memory);
  SIPHON_ASSIGN_OR_RETURN(explained.now, StepTimeOf(explained.problem, explained.costs.mapping,
                                                    memory, in_force.schedule));
  explained.off = std::max(explained.now, measured) - std::min(explained.now, measured);
  return explained;
}

}  // namespace

bool GainsEnough(Nanos now, Nanos then, Nanos measured) {
  const Nanos gain = now - then;
  const Nanos off = std::max(now, measured) - std::min(now, measured);
  return gain * 100 > std::max(now, measured) * kLeastGain && gain > off;
}

absl::StatusOr<ReplanStudy> StudyReplan(const PreparedJob& prepared, const FollowedPlan& in_force,
                                        const MeasuredRun& measured) {
  const PlannedJob planned{prepared.job, prepared.model.spec, prepared.whole};
  const std::string& strategy = prepared.job.memory.strategy;
  SIPHON_ASSIGN_OR_RETURN(const RunMachine machine, MachineOf(prepared));
  WorkersOfJob workers = WorkersOn(machine, planned, prepared);
  SIPHON_ASSIGN_OR_RETURN(MeasuredCosts costs, CostsOf(prepared, measured));
  SIPHON_ASSIGN_OR_RETURN(Explained best, Explain(workers, in_force, measured.step, costs));
  costs.links.clear();
  SIPHON_ASSIGN_OR_RETURN(Explained other,
                          Explain(workers, in_force, measured.step, std::move(costs)));
  if (other.off < best.off) best = std::move(other);
  const auto step_time = [&](const MemoryPlan& memory, const Schedule& schedule) {
    return StepTimeOf(best.problem, best.costs.mapping, memory, schedule);
  };
  ReplanStudy study{.now = best.now};
  SIPHON_ASSIGN_OR_RETURN(study.kept, step_time({}, best.problem.schedule));
  if (!GainsEnough(study.now, study.kept, measured.step)) return study;
  workers.measured = &best.costs;
  const absl::StatusOr<FittingStep> fitting = PlanFittingStep(workers, strategy);
  if (!fitting.ok()) {
    return Annotate(fitting.status(), "planned again with what was measured, no other is found");
  }
  const FittingStep& found = *fitting;
  const PlannedStep& step = found.live.step;
  SIPHON_ASSIGN_OR_RETURN(study.best, step_time(step.memory, step.schedule));
  if (!GainsEnough(study.now, study.best, measured.step)) return study;
  SIPHON_ASSIGN_OR_RETURN(PlanText text, TextOf(found, strategy, prepared.whole));
  text.predicted.step_time = study.best;
  SIPHON_RETURN_IF_ERROR(CheckHostRoom(prepared, in_force, found.live));
  study.plan = std::move(text);
  return study;
}

std::string ReplanText(const ReplanStudy& study, Nanos measured, Nanos planning) {
  const std::string instead = absl::StrCat(" instead of ", FormatNanos(study.now),
                                           " a step (measured ", FormatNanos(measured), ")");
  if (study.plan.has_value()) {
    return absl::StrCat("re-planned in ", FormatNanos(planning), ": predicted ",
                        FormatNanos(study.best), instead);
  }
  if (study.best == Nanos(0)) {
    return absl::StrCat("the plan stays: even with everything kept, predicted ",
                        FormatNanos(study.kept), instead);
  }
  return absl::StrCat("the plan stays: planned again in ", FormatNanos(planning), ", predicted ",
                      FormatNanos(study.best), instead);
}

}  // namespace siphon
