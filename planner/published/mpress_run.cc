#include "planner/published/mpress_run.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/stage_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kTera = 1e12;

// Of one stage.
Bytes SavedInStage(Placement placement, const StagePlan& stage, const StageCost& cost,
                   const LiveCopies& live) {
  Bytes saved;
  const bool state_on_host =
      placement == Placement::kHostSwap && stage.update == UpdatePlace::kHost;
  if (state_on_host) saved += cost.optimizer_state;  // but for groups of it, which say where it is
  for (const auto& [group, choice] : stage.groups) {
    if (state_on_host && group.kind == GroupKind::kOptimizerState) saved -= group.bytes;
    if (choice.placement != placement) continue;
    Bytes bytes = group.bytes;
    if (placement == Placement::kRecompute) bytes -= group.input;
    saved += bytes * CopiesOf(group.kind, live);
  }
  return saved;
}

// `steps`: of the instance, in the time.
void SetSpeed(Nanos time, const MpressInstance& instance, double steps, MpressRun& run) {
  run.step_time = time;
  const double seconds = static_cast<double>(time.value) / kNanosPerSecond;
  run.samples_per_second = steps * static_cast<double>(instance.samples) / seconds;
  run.tflops = steps * instance.flops / seconds / kTera;
}

}  // namespace

MemorySaved SavedBy(Placement placement, const PlanningProblem& problem,
                    const PlannedStep& planned) {
  const std::vector<int> live = PeakLiveActivations(problem.schedule);
  const std::vector<int> versions = PeakWeightVersions(problem.schedule);
  const std::vector<StageCost> costs = StageCosts(problem.profile, problem.partition);
  MemorySaved saved;
  for (size_t stage = 0; stage < planned.memory.stages.size(); ++stage) {
    const int worker = problem.schedule.worker_of_stage[stage].value;
    const Bytes bytes =
        SavedInStage(placement, planned.memory.stages[stage], costs[stage],
                     {.microbatches = live[worker], .weight_versions = versions[stage] - 1});
    if (bytes == Bytes(0)) continue;
    saved.bytes += bytes;
    saved.stages.emplace_back(static_cast<int>(stage));
  }
  return saved;
}

std::string ReasonOf(const MpressRun& run) { return SentenceOf(run.status); }

absl::StatusOr<SimulatedStep> KeptStep(const PlanningProblem& problem) {
  SimulationInput input =
      SimulationOf(problem, IdentityMapping(kMpressStages), {}, problem.schedule);
  input.capacity.clear();
  return Simulate(input);
}

absl::StatusOr<MpressRun> RunInstance(const MpressInstance& instance,
                                      const MemoryStrategy& strategy) {
  MpressRun run{.model = instance.row.name, .strategy = std::string(strategy.name)};
  const absl::StatusOr<PlannedStep> planned = strategy.plan(instance.problem);
  run.status = planned.status();
  if (absl::IsResourceExhausted(run.status) || absl::IsFailedPrecondition(run.status)) return run;
  SIPHON_RETURN_IF_ERROR(run.status);
  SetSpeed(planned->simulated.step_time, instance, /*steps=*/1, run);
  run.recomputed = SavedBy(Placement::kRecompute, instance.problem, *planned);
  run.host = SavedBy(Placement::kHostSwap, instance.problem, *planned);
  run.peers = SavedBy(Placement::kPeerSwap, instance.problem, *planned);
  SIPHON_ASSIGN_OR_RETURN(const SimulatedStep kept, KeptStep(instance.problem));
  for (const MemoryByKind& peak : kept.peak) run.overflow += Total(peak);
  for (const Bytes capacity : instance.problem.capacity) run.overflow -= capacity;
  run.overflow = std::max(run.overflow, Bytes(0));
  return run;
}

absl::StatusOr<MpressRun> RunBaseline(const MpressInstance& instance,
                                      const MemoryBaseline& baseline, BaselineStepSize size) {
  const bool one = size == BaselineStepSize::kOneMicrobatch;
  MpressRun run{.model = instance.row.name,
                .strategy = absl::StrCat(baseline.name, one ? "/1" : "")};
  const PlanningProblem& problem = instance.problem;
  const int devices = DeviceCount(problem.topology);
  const BaselineProblem alone{
      .profile = problem.profile,
      .topology = problem.topology,
      .microbatches = one ? 1 : (kMpressMicrobatches + devices - 1) / devices,
      .capacity = *std::min_element(problem.capacity.begin(), problem.capacity.end()),
      .host_step = problem.host_step};
  const absl::StatusOr<BaselineStep> step = baseline.step(alone);
  run.status = step.status();
  if (absl::IsResourceExhausted(run.status)) return run;
  SIPHON_RETURN_IF_ERROR(run.status);
  const double steps = static_cast<double>(alone.microbatches * devices) / kMpressMicrobatches;
  SetSpeed(step->step_time, instance, steps, run);
  return run;
}

}  // namespace siphon
