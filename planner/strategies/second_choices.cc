#include "planner/strategies/second_choices.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/placement_bytes.h"
#include "planner/status.h"
#include "planner/strategies/computing_again.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/spare_lending.h"
#include "planner/strategies/start_drafts.h"

namespace siphon {
namespace {

struct SecondChoice {
  Placement activations = Placement::kKeep;  // kKeep: none
  Placement weights = Placement::kKeep;      // and gradients and optimizer state
};

// What can be done instead, the best first.
std::vector<SecondChoice> SecondChoicesFor(const PlanningProblem& problem,
                                           const DeviceMapping& mapping, Placement from) {
  using enum Placement;
  const bool host = ReachesHost(problem, mapping);
  const bool drives = host && !problem.topology.drives.empty();
  if (from == kHostSwap) {
    if (!drives) return {{kRecompute, kKeep}};
    return {{kRecompute, kNvmeSwap}, {kNvmeSwap, kNvmeSwap}, {kRecompute, kKeep}};
  }
  if (!host) return {{kRecompute, kKeep}};
  std::vector<SecondChoice> choices = {{kHostSwap, kHostSwap}, {kRecompute, kHostSwap}};
  if (from == kPeerSwap && drives) choices.push_back({kRecompute, kNvmeSwap});
  choices.push_back({kRecompute, kKeep});
  return choices;
}

// A group of the plan, by its place there.
struct GroupPlace {
  size_t stage = 0;
  size_t group = 0;
};

// Looks for the second choices of all groups at one place. They are taken at once for the trial:
// those that have none stay where they are.
class ChoiceGiver {
 public:
  ChoiceGiver(DraftSimulator& simulator, const SimulatedDraft& simulated, Placement from)
      : simulator_(simulator),
        simulated_(simulated),
        choices_(SecondChoicesFor(simulator.problem(), simulated.draft.mapping, from)),
        given_(simulated.memory),
        workers_(static_cast<size_t>(WorkerCount(simulator.problem().schedule))) {
    const Schedule& schedule = simulator.problem().schedule;
    for (size_t stage = 0; stage < given_.stages.size(); ++stage) {
      const std::vector<PlannedGroup>& groups = given_.stages[stage].groups;
      for (size_t group = 0; group < groups.size(); ++group) {
        if (groups[group].choice.placement != from || TakesPartOnHost(stage, group)) continue;
        workers_[schedule.worker_of_stage[stage].value].push_back({stage, group});
        all_.push_back({stage, group});
      }
    }
  }

  // The plan with all that fits: one kind of choice for all, or else of each worker, or else of as
  // many of its groups as there is room for.
  absl::StatusOr<MemoryPlan> Run() {
    SIPHON_ASSIGN_OR_RETURN(bool fits, GiveAny(all_));
    for (size_t worker = 0; worker < workers_.size() && !fits; ++worker) {
      const std::vector<GroupPlace>& own = workers_[worker];
      SIPHON_ASSIGN_OR_RETURN(const bool all, GiveAny(own));
      if (!all && own.size() > 1) SIPHON_RETURN_IF_ERROR(GiveToSome(own));
    }
    return std::move(given_);
  }

 private:
  // Parameters and gradients that are with the host, where their optimizer step is: what stands
  // elsewhere would have to come in before it, by another program.
  bool TakesPartOnHost(size_t stage, size_t group) const {
    const StagePlan& plan = given_.stages[stage];
    return plan.update == UpdatePlace::kHost && !IsPassing(plan.groups[group].group.kind) &&
           plan.groups[group].choice.placement == Placement::kHostSwap;
  }
  // The first choice with which they fit.
  absl::StatusOr<bool> GiveAny(const std::vector<GroupPlace>& groups) {
    for (const SecondChoice& choice : choices_) {
      SIPHON_ASSIGN_OR_RETURN(const bool fits, Give(groups, choice));
      if (fits) return true;
    }
    return groups.empty();
  }

  // Of those of the first half, and of these, and so on; then of the rest.
  absl::Status GiveToSome(const std::vector<GroupPlace>& groups) {
    if (groups.size() < 2 || ++trials_ > kMostTrials) return absl::OkStatus();
    const auto middle = groups.begin() + static_cast<std::ptrdiff_t>(groups.size() / 2);
    for (const std::vector<GroupPlace>& half : {std::vector<GroupPlace>(groups.begin(), middle),
                                                std::vector<GroupPlace>(middle, groups.end())}) {
      SIPHON_ASSIGN_OR_RETURN(const bool fits, GiveAny(half));
      if (!fits) SIPHON_RETURN_IF_ERROR(GiveToSome(half));
    }
    return absl::OkStatus();
  }

  // Adds the choices to those that are given already, if all of them fit together.
  absl::StatusOr<bool> Give(const std::vector<GroupPlace>& groups, const SecondChoice& choice) {
    MemoryPlan trial = given_;
    bool any = false;
    for (const GroupPlace& at : groups) {
      auto& [group, decided] = trial.stages[at.stage].groups[at.group];
      const bool activations = group.kind == GroupKind::kActivations;
      decided.second_choice = activations ? choice.activations : choice.weights;
      any |= decided.second_choice != Placement::kKeep;
    }
    if (!any) return false;
    SIPHON_ASSIGN_OR_RETURN(const bool fits, FitsWith(Taken(trial)));
    if (fits) given_ = std::move(trial);
    return fits;
  }

  MemoryPlan Taken(MemoryPlan plan) const {
    for (const GroupPlace& at : all_) {
      GroupChoice& choice = plan.stages[at.stage].groups[at.group].choice;
      if (choice.second_choice == Placement::kKeep) continue;
      choice = {.placement = choice.second_choice};
    }
    return plan;
  }

  absl::StatusOr<bool> FitsWith(MemoryPlan plan) {
    const auto tried = simulator_.RunPlan(simulated_.draft, std::move(plan));
    if (tried.ok()) return Fits(*tried);
    // Layers that are to be computed again together with weights that come in by other blocks.
    const bool cannot = absl::IsResourceExhausted(tried.status()) ||
                        absl::IsInvalidArgument(tried.status()) ||
                        absl::IsFailedPrecondition(tried.status());
    if (cannot) return false;
    return tried.status();
  }

  // Of halves, for each place: problems of many layers have no time for more.
  static constexpr int kMostTrials = 16;

  DraftSimulator& simulator_;
  const SimulatedDraft& simulated_;
  const std::vector<SecondChoice> choices_;
  MemoryPlan given_;
  std::vector<std::vector<GroupPlace>> workers_;  // [worker]
  std::vector<GroupPlace> all_;
  int trials_ = 0;
};

// What still has none, and is with the host or on a drive.
absl::Status LendToTheRestOf(const PlanningProblem& problem, SimulatedDraft& simulated) {
  const Schedule& schedule = problem.schedule;
  if (schedule.replicas > 1 || !AnyWantsLenders(simulated.memory)) return absl::OkStatus();
  const auto peaks =
      PeaksComputingAgain(problem, simulated.draft.mapping, {simulated.memory, simulated.schedule},
                          simulated.peaks, problem.held);
  // Groups of several tiers, which cannot all be computed again by these programs.
  if (absl::IsFailedPrecondition(peaks.status())) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(peaks.status());
  const std::vector<LiveCopies> live = PeakLiveCopies(schedule);
  const auto times = [&](StageId stage, GroupId group) {
    const TensorGroup& tensors = simulated.memory.stages[stage.value].groups[group.value].group;
    return int64_t{CopiesAway(tensors.kind, live[stage.value])};
  };
  LendToTheRest(schedule.worker_of_stage, times,
                SpareLending(problem.topology, simulated.draft.mapping, problem.capacity, *peaks,
                             problem.granule),
                simulated.memory);
  return absl::OkStatus();
}

}  // namespace

absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated) {
  for (const Placement from : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap}) {
    if (!Uses(simulated.draft, from)) continue;
    SIPHON_ASSIGN_OR_RETURN(simulated.memory, ChoiceGiver(simulator, simulated, from).Run());
  }
  return LendToTheRestOf(simulator.problem(), simulated);
}

}  // namespace siphon
