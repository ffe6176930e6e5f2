#include "planner/search/start_within_host.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/search/start_drafts.h"
#include "planner/status.h"
#include "planner/topology.h"

namespace siphon {
namespace {

class HostFiller {
 public:
  // `base`: with hosts that hold anything.
  HostFiller(DraftSimulator& simulator, DraftPlan base)
      : simulator_(simulator), base_(std::move(base)) {
    for (const StageDraft& stage : base_.stages) {
      const auto leaving = static_cast<int>(
          std::count(stage.activations.begin(), stage.activations.end(), Placement::kHostSwap));
      most_ = std::max(most_, leaving);
    }
  }

  absl::StatusOr<SimulatedDraft> Fill() {
    const auto stages = static_cast<int>(base_.stages.size());
    // In whole layers of all stages, then the last of these in as few of the first stages, whose
    // layers are more bytes.
    const auto layers = Least(most_, [&](int count) { return WithComputedAgain(count, stages); });
    SIPHON_RETURN_IF_ERROR(layers.status());
    if (*layers == 0) return WithComputedAgain(0, stages);
    const auto first = Least(stages, [&](int count) { return WithComputedAgain(*layers, count); });
    SIPHON_RETURN_IF_ERROR(first.status());
    return WithComputedAgain(*layers, *first);
  }

 private:
  // The least number from 0 to `most` whose draft fits, if more do not fit worse.
  template <typename DraftOf>
  absl::StatusOr<int> Least(int most, const DraftOf& draft_of) {
    const auto fits = [&](int count) -> absl::StatusOr<bool> {
      const absl::StatusOr<SimulatedDraft> draft = draft_of(count);
      if (absl::IsResourceExhausted(draft.status())) return false;
      SIPHON_RETURN_IF_ERROR(draft.status());
      return Fits(*draft);
    };
    SIPHON_ASSIGN_OR_RETURN(const bool possible, fits(most));
    if (!possible) return absl::ResourceExhaustedError("no number of layers is enough");
    int least = 0;
    while (least < most) {
      const int middle = least + (most - least) / 2;
      SIPHON_ASSIGN_OR_RETURN(const bool enough, fits(middle));
      (enough ? most : least) = enough ? middle : middle + 1;
    }
    return least;
  }

  // Of the first stages so many of their last layers that leave for the host, of the others one
  // less.
  absl::StatusOr<SimulatedDraft> WithComputedAgain(int layers, int first_stages) {
    DraftPlan draft = base_;
    for (int index = 0; index < static_cast<int>(draft.stages.size()); ++index) {
      StageDraft& stage = draft.stages[index];
      int left = index < first_stages ? layers : layers - 1;
      for (size_t layer = stage.activations.size(); layer > 0 && left > 0; --layer) {
        Placement& placement = stage.activations[layer - 1];
        if (placement != Placement::kHostSwap) continue;
        placement = Placement::kRecompute;
        --left;
      }
    }
    return simulator_.Run(std::move(draft));
  }

  DraftSimulator& simulator_;
  const DraftPlan base_;
  int most_ = 0;  // layers of a stage that leave for the host
};

}  // namespace

bool MayFillHosts(const PlanningProblem& problem, const SimulatedDraft& kept) {
  const Bytes host = problem.topology.host_memory;
  if (host == Bytes(0)) return false;
  Bytes excess;
  for (const Bytes of_worker : kept.excess) excess += of_worker;
  return excess > Bytes(host.value / 2) * ServerCount(problem.topology);
}

absl::StatusOr<SimulatedDraft> StartWithinHost(DraftSimulator& simulator, const DraftPlan& kept) {
  PlanningProblem roomy = simulator.problem();
  roomy.topology.host_memory = Bytes(0);
  DraftSimulator anything(roomy);
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft all, anything.Run(kept));
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft start, BestStart(anything, all));
  if (!Fits(start)) return absl::ResourceExhaustedError("no start fits, whatever hosts hold");
  absl::StatusOr<SimulatedDraft> as_it_is = simulator.Run(start.draft);
  if (as_it_is.ok() && Fits(*as_it_is)) {
    return absl::FailedPreconditionError("hosts have room for the best start");
  }
  if (!as_it_is.ok() && !absl::IsResourceExhausted(as_it_is.status())) return as_it_is.status();
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("no draft has been filled");
  for (const bool state_stays : {false, true}) {
    if (best.ok()) break;
    for (const bool one_by_one : {false, true}) {
      DraftPlan base = start.draft;
      for (StageDraft& stage : base.stages) {
        if (state_stays) {
          std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kKeep);
          stage.update = UpdatePlace::kDevice;
        }
        if (one_by_one) {
          stage.recompute_run = 1;
          stage.direct = DirectBackward::kDrop;
        }
      }
      best = Better(std::move(best), HostFiller(simulator, std::move(base)).Fill());
    }
  }
  return best;
}

}  // namespace siphon
