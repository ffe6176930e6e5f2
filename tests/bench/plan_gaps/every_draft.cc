#include "tests/bench/plan_gaps/every_draft.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/host_reach.h"
#include "planner/search/draft_changes.h"
#include "planner/status.h"
#include "planner/topology_symmetry.h"

namespace siphon {
namespace {

constexpr int kMostActions = 6;

using Placements = std::vector<Placement>;
// Of all stages of one worker.
using WorkerDraft = std::vector<StageDraft>;

bool Has(const Placements& layers, Placement placement) {
  return std::find(layers.begin(), layers.end(), placement) != layers.end();
}

bool HasSwap(const Placements& layers) { return std::any_of(layers.begin(), layers.end(), IsSwap); }

// Whether two neighbours have the same one, so that they can go together or apart.
bool HasPair(const Placements& layers, Placement placement) {
  for (size_t layer = 1; layer < layers.size(); ++layer) {
    if (layers[layer - 1] == placement && layers[layer] == placement) return true;
  }
  return false;
}

bool HasSwapPair(const Placements& layers) {
  return HasPair(layers, Placement::kPeerSwap) || HasPair(layers, Placement::kHostSwap) ||
         HasPair(layers, Placement::kNvmeSwap);
}

// All words of so many letters.
std::vector<Placements> EveryPlacement(size_t layers, const std::vector<Placement>& possible) {
  std::vector<Placements> all = {{}};
  for (size_t layer = 0; layer < layers; ++layer) {
    std::vector<Placements> longer;
    for (const Placements& word : all) {
      for (const Placement placement : possible) {
        longer.push_back(word);
        longer.back().push_back(placement);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// 0 (no limit) and all sizes that part neighbours, or only one where there are none.
int MostRun(bool pairs, size_t layers) { return pairs ? static_cast<int>(layers) - 1 : 0; }

class EveryDraft {
 public:
  EveryDraft(const PlanningProblem& problem, int64_t most_drafts)
      : problem_(problem),
        most_drafts_(most_drafts),
        simulator_(problem),
        kept_(KeepingDraft(problem)),
        places_(PossiblePlacements(problem, kept_.mapping)) {
    // Every worker has somebody to give to while programs are compared.
    for (size_t worker = 0; worker < kept_.lenders.size(); ++worker) {
      const size_t other = (worker + 1) % kept_.mapping.device_of_worker.size();
      kept_.lenders[worker] = {{kept_.mapping.device_of_worker[other], 1}};
    }
  }

  absl::StatusOr<DraftOptimum> Run() {
    std::vector<std::vector<WorkerDraft>> workers;
    const std::vector<DeviceMapping> maps = Maps();
    auto drafts = static_cast<double>(maps.size());
    for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
      SIPHON_ASSIGN_OR_RETURN(std::vector<WorkerDraft> all, OfWorker(worker));
      workers.push_back(std::move(all));
      drafts *= static_cast<double>(workers.back().size());
      if (drafts > static_cast<double>(most_drafts_)) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than ", most_drafts_, " drafts to try"));
      }
    }
    for (const DeviceMapping& map : maps) {
      DraftPlan draft = kept_;
      draft.mapping = map;
      SIPHON_RETURN_IF_ERROR(TryAll(workers, 0, draft));
    }
    return std::move(optimum_);
  }

 private:
  // One of each family that looks the same.
  std::vector<DeviceMapping> Maps() const {
    if (problem_.mapping.has_value() || DeviceCount(problem_.topology) == 0) {
      return {kept_.mapping};
    }
    const TopologySymmetry symmetry(problem_.topology);
    std::vector<std::vector<DeviceId>> maps = {{}};
    for (size_t worker = 0; worker < kept_.mapping.device_of_worker.size(); ++worker) {
      std::vector<std::vector<DeviceId>> longer;
      for (const std::vector<DeviceId>& placed : maps) {
        for (const DeviceId next : symmetry.NextDevices(placed)) {
          longer.push_back(placed);
          longer.back().push_back(next);
        }
      }
      maps = std::move(longer);
    }
    std::vector<DeviceMapping> different;
    for (std::vector<DeviceId>& map : maps) different.push_back({std::move(map)});
    return different;
  }

  // What the worker does, and with which groups.
  absl::StatusOr<std::string> TextOf(int worker, const WorkerDraft& decided) const {
    DraftPlan draft = kept_;
    const std::vector<StageId> stages = StagesOf(problem_.schedule, WorkerId(worker));
    for (size_t index = 0; index < stages.size(); ++index) {
      draft.stages[stages[index].value] = decided[index];
    }
    const MemoryPlan plan = PlanOf(problem_, draft);
    SIPHON_ASSIGN_OR_RETURN(const Schedule lowered,
                            LowerMemoryPlan(problem_.schedule, plan, LoweringOf(draft)));
    std::string text;
    for (const Action& action : lowered.programs[worker]) {
      absl::StrAppend(&text, ToString(action), " ");
    }
    for (const StageId stage : stages) {
      const StagePlan& planned = plan.stages[stage.value];
      absl::StrAppend(&text, "\n", static_cast<int>(planned.update));
      for (const auto& [group, choice] : planned.groups) {
        absl::StrAppend(&text, " ", static_cast<int>(group.kind), ":", group.layers.begin, "-",
                        group.layers.end, ":", PlacementName(choice.placement));
      }
    }
    return text;
  }

  // Those that differ from each other.
  absl::StatusOr<std::vector<WorkerDraft>> Different(int worker,
                                                     std::vector<WorkerDraft> all) const {
    std::set<std::string> seen;
    std::vector<WorkerDraft> different;
    for (WorkerDraft& draft : all) {
      SIPHON_ASSIGN_OR_RETURN(std::string text, TextOf(worker, draft));
      if (seen.insert(std::move(text)).second) different.push_back(std::move(draft));
    }
    return different;
  }

  // Activations and optimizer state of a stage have nothing to do with each other in a program, so
  // each is made unlike for itself before they are put together.
  absl::StatusOr<std::vector<WorkerDraft>> OfWorker(int worker) const {
    std::vector<WorkerDraft> all = {{}};
    const std::vector<StageId> stages = StagesOf(problem_.schedule, WorkerId(worker));
    for (size_t index = 0; index < stages.size(); ++index) {
      SIPHON_ASSIGN_OR_RETURN(const std::vector<StageDraft> mine,
                              OfStage(worker, index, stages[index]));
      std::vector<WorkerDraft> longer;
      for (const WorkerDraft& before : all) {
        for (const StageDraft& stage : mine) {
          longer.push_back(before);
          longer.back().push_back(stage);
        }
      }
      if (static_cast<int64_t>(longer.size()) > most_drafts_) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than ", most_drafts_, " drafts to try"));
      }
      all = std::move(longer);
    }
    return Different(worker, std::move(all));
  }

  absl::StatusOr<std::vector<StageDraft>> OfStage(int worker, size_t index, StageId stage) const {
    SIPHON_ASSIGN_OR_RETURN(const std::vector<StageDraft> activations,
                            Unlike(worker, index, EveryActivations(stage)));
    SIPHON_ASSIGN_OR_RETURN(const std::vector<StageDraft> states,
                            Unlike(worker, index, EveryState(stage)));
    std::vector<StageDraft> all;
    for (const StageDraft& activation : activations) {
      for (const StageDraft& state : states) {
        StageDraft& both = all.emplace_back(activation);
        both.optimizer_state = state.optimizer_state;
        both.update = state.update;
        both.timing.actions_before_step = state.timing.actions_before_step;
        both.timing.groups_ahead = state.timing.groups_ahead;
        // Layers of both kinds go together or apart alike.
        if (HasSwapPair(state.optimizer_state) && !HasSwapPair(both.activations)) {
          both.swap_run = state.swap_run;
        }
      }
    }
    return all;
  }

  absl::StatusOr<std::vector<StageDraft>> Unlike(int worker, size_t index,
                                                 std::vector<StageDraft> all) const {
    const std::vector<StageId> stages = StagesOf(problem_.schedule, WorkerId(worker));
    std::vector<WorkerDraft> drafts;
    for (StageDraft& stage : all) {
      WorkerDraft& draft = drafts.emplace_back();
      for (const StageId own : stages) draft.push_back(kept_.stages[own.value]);
      draft[index] = std::move(stage);
    }
    SIPHON_ASSIGN_OR_RETURN(const std::vector<WorkerDraft> different,
                            Different(worker, std::move(drafts)));
    std::vector<StageDraft> unlike;
    for (const WorkerDraft& draft : different) unlike.push_back(draft[index]);
    return unlike;
  }

  std::vector<StageDraft> EveryActivations(StageId stage) const {
    std::vector<StageDraft> all;
    StageDraft draft = kept_.stages[stage.value];
    const size_t layers = draft.activations.size();
    for (const Placements& word : EveryPlacement(layers, places_)) {
      draft.activations = word;
      const int swapped = HasSwap(word) ? kMostActions : 0;
      const int direct = Has(word, Placement::kRecompute) ? 1 : 0;
      for (int leave = 0; leave <= swapped; ++leave) {
        for (int back = 0; back <= swapped; ++back) {
          for (int run = 0; run <= MostRun(HasSwapPair(word), layers); ++run) {
            for (int again = 0; again <= MostRun(HasPair(word, Placement::kRecompute), layers);
                 ++again) {
              for (int drop = 0; drop <= direct; ++drop) {
                draft.timing.forwards_to_leave = leave;
                draft.timing.actions_to_come_back = back;
                draft.swap_run = run;
                draft.recompute_run = again;
                draft.direct = drop == 0 ? DirectBackward::kLeave : DirectBackward::kDrop;
                all.push_back(draft);
              }
            }
          }
        }
      }
    }
    return all;
  }

  std::vector<StageDraft> EveryState(StageId stage) const {
    std::vector<StageDraft> all;
    const StageDraft kept = kept_.stages[stage.value];
    const StageRange& range = problem_.partition.stages[stage.value];
    const auto begin = problem_.profile.layers.begin();
    const bool any =
        std::any_of(begin + range.begin, begin + range.end,
                    [](const LayerProfile& layer) { return layer.optimizer_state > Bytes(0); });
    std::vector<Placement> places = places_;
    places.erase(std::remove(places.begin(), places.end(), Placement::kRecompute), places.end());
    if (!any) places = {Placement::kKeep};
    const size_t layers = kept.optimizer_state.size();
    for (const Placements& word : EveryPlacement(layers, places)) {
      StageDraft draft = kept;
      draft.optimizer_state = word;
      const int most = HasSwap(word) ? kMostActions : 0;
      for (int before = 0; before <= most; ++before) {
        for (int ahead = 0; ahead <= std::min(most, static_cast<int>(layers)); ++ahead) {
          for (int run = 0; run <= MostRun(HasSwapPair(word), layers); ++run) {
            draft.timing.actions_before_step = before;
            draft.timing.groups_ahead = ahead;
            draft.swap_run = run;
            all.push_back(draft);
          }
        }
      }
    }
    if (HostMayStep(problem_, kept_.mapping)) {
      all.push_back(kept);
      PutStepOnHost(all.back());
    }
    return all;
  }

  absl::Status TryAll(const std::vector<std::vector<WorkerDraft>>& workers, size_t worker,
                      DraftPlan& draft) {
    if (worker == workers.size()) return Try(draft);
    const std::vector<StageId> stages =
        StagesOf(problem_.schedule, WorkerId(static_cast<int>(worker)));
    for (const WorkerDraft& decided : workers[worker]) {
      for (size_t index = 0; index < stages.size(); ++index) {
        draft.stages[stages[index].value] = decided[index];
      }
      SIPHON_RETURN_IF_ERROR(TryAll(workers, worker + 1, draft));
    }
    return absl::OkStatus();
  }

  absl::Status Try(DraftPlan draft) {
    ++optimum_.drafts;
    draft.lenders.assign(draft.lenders.size(), {});
    absl::StatusOr<SimulatedDraft> tried = simulator_.Run(std::move(draft));
    if (absl::IsResourceExhausted(tried.status())) return absl::OkStatus();
    if (!tried.ok()) return tried.status();
    const bool better =
        Fits(*tried) && (!optimum_.best.has_value() || tried->score < optimum_.best->score);
    if (better) optimum_.best = *std::move(tried);
    return absl::OkStatus();
  }

  const PlanningProblem& problem_;
  const int64_t most_drafts_;
  DraftSimulator simulator_;
  DraftPlan kept_;
  std::vector<Placement> places_;
  DraftOptimum optimum_;
};

}  // namespace

absl::StatusOr<DraftOptimum> BestOfEveryDraft(const PlanningProblem& problem, int64_t most_drafts) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  return EveryDraft(problem, most_drafts).Run();
}

}  // namespace siphon
