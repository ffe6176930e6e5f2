#include "planner/second_choices/second_lenders.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "planner/placement_bytes.h"
#include "planner/second_choices/computing_again.h"
#include "planner/second_choices/spare_lending.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool GoesToLenders(const PlannedGroup& planned) { return WouldGo(planned, Placement::kPeerSwap); }

class SecondLenders {
 public:
  // `most`: [worker], with what its own second choices take.
  SecondLenders(const PlanningProblem& problem, const DeviceMapping& mapping,
                const std::vector<Bytes>& most, SecondChoiceTrials& trials)
      : trials_(trials),
        worker_of_stage_(problem.schedule.worker_of_stage),
        live_(PeakLiveCopies(problem.schedule)),
        spare_(problem.topology, mapping, problem.capacity, most, problem.granule) {}

  absl::StatusOr<MemoryPlan> AddTo(MemoryPlan plan) {
    MemoryPlan all = plan;
    const auto times = [&](StageId stage, GroupId group) {
      const TensorGroup& tensors = all.stages[stage.value].groups[group.value].group;
      return int64_t{CopiesAway(tensors.kind, live_[stage.value])};
    };
    LendToTheRest(worker_of_stage_, times, spare_, all);
    SIPHON_ASSIGN_OR_RETURN(const bool fits, Fit(all));
    if (fits) return all;
    const int workers = absl::c_max_element(worker_of_stage_)->value + 1;
    for (int worker = 0; worker < workers; ++worker) {
      std::optional<MemoryPlan> trial = WithLendersOf(WorkerId(worker), all, plan);
      if (!trial.has_value()) continue;
      SIPHON_ASSIGN_OR_RETURN(const bool own_fit, Fit(*trial));
      if (own_fit) plan = *std::move(trial);
    }
    return plan;
  }

 private:
  // `plan` with the owner's second lenders of `all`; none where it has none.
  std::optional<MemoryPlan> WithLendersOf(WorkerId owner, const MemoryPlan& all,
                                          MemoryPlan plan) const {
    bool any = false;
    for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
      if (worker_of_stage_[stage] != owner) continue;
      any |= absl::c_any_of(all.stages[stage].groups, GoesToLenders);
      plan.stages[stage] = all.stages[stage];
    }
    if (!any) return std::nullopt;
    return plan;
  }

  absl::StatusOr<bool> Fit(const MemoryPlan& plan) {
    const SecondStripes stripes = StripesOf(plan);
    for (const Placement from : {Placement::kNvmeSwap, Placement::kHostSwap}) {
      const auto lends = [from](const PlannedGroup& planned) {
        return planned.choice.placement == from && GoesToLenders(planned);
      };
      const bool concerns = absl::c_any_of(
          plan.stages, [&](const StagePlan& stage) { return absl::c_any_of(stage.groups, lends); });
      if (!concerns) continue;
      const auto goes = [from](StageId, const PlannedGroup& planned) {
        return planned.choice.placement == from && planned.choice.second_choice != Placement::kKeep;
      };
      SIPHON_ASSIGN_OR_RETURN(const bool fits, trials_.Fit(plan, goes, stripes));
      if (!fits) return false;
    }
    return true;
  }

  // As those who take them cut them, group by group.
  SecondStripes StripesOf(const MemoryPlan& plan) const {
    SpareLending spare = spare_;
    SecondStripes stripes;
    for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
      const std::vector<PlannedGroup>& groups = plan.stages[stage].groups;
      for (size_t group = 0; group < groups.size(); ++group) {
        if (!GoesToLenders(groups[group])) continue;
        const TensorGroup& tensors = groups[group].group;
        auto placed = spare.Place(worker_of_stage_[stage], tensors.bytes,
                                  CopiesAway(tensors.kind, live_[stage]));
        SIPHON_CHECK(placed.has_value(), "there was room for these, and more");
        stripes[{StageId(static_cast<int>(stage)), GroupId(static_cast<int>(group))}] =
            *std::move(placed);
      }
    }
    return stripes;
  }

  SecondChoiceTrials& trials_;
  const std::vector<WorkerId>& worker_of_stage_;
  const std::vector<LiveCopies> live_;  // [stage]
  const SpareLending spare_;
};

}  // namespace

absl::Status GiveSecondLenders(const PlanningProblem& problem, const DeviceMapping& mapping,
                               const std::vector<Bytes>& peaks, SecondChoiceTrials& trials,
                               FollowedPlan& plan) {
  if (problem.schedule.replicas > 1 || !AnyWantsLenders(plan.memory)) return absl::OkStatus();
  const auto most = PeaksComputingAgain(problem, mapping, plan, peaks, problem.held);
  // Groups of several tiers, which cannot all be computed again by these programs.
  if (absl::IsFailedPrecondition(most.status())) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(most.status());
  SIPHON_ASSIGN_OR_RETURN(
      plan.memory, SecondLenders(problem, mapping, *most, trials).AddTo(std::move(plan.memory)));
  return absl::OkStatus();
}

}  // namespace siphon
