#include "planner/second_choices/second_choices.h"

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "planner/drafts/host_reach.h"
#include "planner/second_choices/host_room_on_drives.h"
#include "planner/second_choices/second_choice_trials.h"
#include "planner/second_choices/second_lenders.h"
#include "planner/status.h"

namespace siphon {
namespace {

enum class Tensors { kWeights, kActivations };  // kWeights: all others

// Where they can go instead, the best first.
std::vector<Placement> SecondPlaces(const PlanningProblem& problem, const DeviceMapping& mapping,
                                    Placement from, Tensors tensors) {
  const bool host = ReachesHost(problem, mapping);
  std::vector<Placement> places;
  if (host && from != Placement::kHostSwap) places.push_back(Placement::kHostSwap);
  if (tensors == Tensors::kActivations) places.push_back(Placement::kRecompute);
  const bool drives = host && !problem.topology.drives.empty();
  if (drives && from != Placement::kNvmeSwap) places.push_back(Placement::kNvmeSwap);
  return places;
}

// A group of the plan, by its place there.
struct GroupPlace {
  size_t stage = 0;
  size_t group = 0;
};

// Looks for the second choices of all such tensors at one place. All that are found there are taken
// at once for the trial; groups that have none stay where they are.
class ChoiceGiver {
 public:
  ChoiceGiver(SecondChoiceTrials& trials, const std::vector<WorkerId>& worker_of_stage,
              Placement from, Tensors tensors, MemoryPlan plan)
      : trials_(trials), from_(from), given_(std::move(plan)) {
    for (size_t stage = 0; stage < given_.stages.size(); ++stage) {
      const StagePlan& stage_plan = given_.stages[stage];
      for (size_t group = 0; group < stage_plan.groups.size(); ++group) {
        const PlannedGroup& planned = stage_plan.groups[group];
        const bool activations = planned.group.kind == GroupKind::kActivations;
        if (activations != (tensors == Tensors::kActivations)) continue;
        if (planned.choice.placement != from || StaysForHostStep(stage_plan, planned)) continue;
        const auto worker = static_cast<size_t>(worker_of_stage[stage].value);
        if (workers_.size() <= worker) workers_.resize(worker + 1);
        workers_[worker].push_back({stage, group});
        all_.push_back({stage, group});
      }
    }
  }

  // The plan with all that fits: one place for all, or else of each worker, or else of as many of
  // its groups as there is room for.
  absl::StatusOr<MemoryPlan> Run(const std::vector<Placement>& places) {
    SIPHON_ASSIGN_OR_RETURN(const bool fits, GiveAny(all_, places));
    for (size_t worker = 0; worker < workers_.size() && !fits; ++worker) {
      const std::vector<GroupPlace>& own = workers_[worker];
      if (own.size() < all_.size()) {
        SIPHON_ASSIGN_OR_RETURN(const bool all, GiveAny(own, places));
        if (all) continue;
      }
      SIPHON_RETURN_IF_ERROR(GiveToSome(own, places));
    }
    return std::move(given_);
  }

 private:
  // The first place with which they fit.
  absl::StatusOr<bool> GiveAny(const std::vector<GroupPlace>& groups,
                               const std::vector<Placement>& places) {
    if (groups.empty()) return true;
    for (const Placement place : places) {
      SIPHON_ASSIGN_OR_RETURN(const bool fits, Give(groups, place));
      if (fits) return true;
    }
    return false;
  }

  // Of those of the first half, and of these, and so on; then of the rest.
  absl::Status GiveToSome(const std::vector<GroupPlace>& groups,
                          const std::vector<Placement>& places) {
    if (places.empty() || groups.size() < 2 || ++halvings_ > kMostHalvings) {
      return absl::OkStatus();
    }
    const auto middle = groups.begin() + static_cast<std::ptrdiff_t>(groups.size() / 2);
    for (const std::vector<GroupPlace>& half : {std::vector<GroupPlace>(groups.begin(), middle),
                                                std::vector<GroupPlace>(middle, groups.end())}) {
      SIPHON_ASSIGN_OR_RETURN(const bool fits, GiveAny(half, places));
      if (!fits) SIPHON_RETURN_IF_ERROR(GiveToSome(half, places));
    }
    return absl::OkStatus();
  }

  // Adds the choices to those that are given already, if all of them fit together.
  absl::StatusOr<bool> Give(const std::vector<GroupPlace>& groups, Placement place) {
    MemoryPlan trial = given_;
    for (const GroupPlace& at : groups) {
      trial.stages[at.stage].groups[at.group].choice.second_choice = place;
    }
    const auto goes = [this](StageId, const PlannedGroup& planned) {
      return planned.choice.placement == from_ && planned.choice.second_choice != Placement::kKeep;
    };
    SIPHON_ASSIGN_OR_RETURN(const bool fits, trials_.Fit(trial, goes));
    if (fits) given_ = std::move(trial);
    return fits;
  }

  // For each place: problems of many layers have no time for more.
  static constexpr int kMostHalvings = 16;

  SecondChoiceTrials& trials_;
  const Placement from_;
  MemoryPlan given_;
  std::vector<std::vector<GroupPlace>> workers_;  // [worker]
  std::vector<GroupPlace> all_;
  int halvings_ = 0;
};

}  // namespace

absl::StatusOr<MemoryPlan> WithSecondChoices(const PlanningProblem& problem,
                                             const DeviceMapping& mapping, FollowedPlan plan,
                                             const std::vector<Bytes>& peaks) {
  SecondChoiceTrials trials(problem, mapping, plan.schedule);
  for (const Placement from : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap}) {
    for (const Tensors tensors : {Tensors::kWeights, Tensors::kActivations}) {
      ChoiceGiver giver(trials, problem.schedule.worker_of_stage, from, tensors, plan.memory);
      SIPHON_ASSIGN_OR_RETURN(plan.memory,
                              giver.Run(SecondPlaces(problem, mapping, from, tensors)));
    }
  }
  SIPHON_RETURN_IF_ERROR(GiveSecondLenders(problem, mapping, peaks, trials, plan));
  return WithHostRoomOnDrives(problem, mapping, std::move(plan));
}

absl::Status AddSecondChoices(DraftSimulator& simulator, SimulatedDraft& simulated) {
  SIPHON_ASSIGN_OR_RETURN(
      simulated.memory, WithSecondChoices(simulator.problem(), simulated.draft.mapping,
                                          {simulated.memory, simulated.schedule}, simulated.peaks));
  return absl::OkStatus();
}

}  // namespace siphon
