#include "planner/search/weight_starts.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/drafts/weight_moves.h"
#include "planner/search/draft_changes.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Of each worker's layers, as many as can come in for a forward and a backward in each slot.
MoveLists HiddenParameters(const DraftSimulator& simulator, const SimulatedDraft& start,
                           MoveLists parameters) {
  const PlanningProblem& problem = simulator.problem();
  const Nanos slot(start.simulated.step_time.value / problem.schedule.microbatches);
  const std::vector<Bytes> hidden = HiddenHostBytes(problem, start.draft.mapping, slot);
  for (size_t worker = 0; worker < parameters.size(); ++worker) {
    std::vector<DraftMove>& moves = parameters[worker];
    Bytes bytes;
    size_t layers = 0;
    for (; layers < moves.size(); ++layers) {
      const StageRange& stage = problem.partition.stages[moves[layers].stage];
      bytes += problem.profile.layers[stage.begin + moves[layers].layer].parameters * 2;
      if (bytes > hidden[worker]) break;
    }
    moves.resize(layers);
  }
  return parameters;
}

// The layers that the draft recomputes, the last ones first.
MoveLists RecomputedAgain(const PlanningProblem& problem, const DraftPlan& draft) {
  MoveLists lists = ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst);
  for (std::vector<DraftMove>& moves : lists) {
    std::erase_if(moves, [&](const DraftMove& move) {
      return draft.stages[move.stage].activations[move.layer] != Placement::kRecompute;
    });
  }
  return lists;
}

// What leaves in which order, and in blocks of how many layers that is tried.
struct BlockMoves {
  std::vector<int> blocks;
  MoveLists moves;
};

// Weights before anything is computed again, for layers that save little by that; and only what is
// too much when all layers are, gradients first, which backwards alone use.
std::vector<BlockMoves> AllBlockMoves(const PlanningProblem& problem,
                                      const DeviceMapping& mapping) {
  const std::vector<std::vector<WorkerLayer>> spread = SpreadLayers(problem);
  const MoveLists again =
      ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst);
  std::vector<BlockMoves> all;
  for (const Placement place : PossiblePlacements(problem, mapping)) {
    if (place != Placement::kHostSwap && place != Placement::kPeerSwap) continue;
    const MoveLists parameters = MovesOf(spread, GroupKind::kParameters, place);
    const MoveLists gradients = MovesOf(spread, GroupKind::kGradients, place);
    if (place == Placement::kHostSwap) {
      all.push_back({{2, 3, 4}, Chain(Chain(parameters, gradients), again)});
    }
    all.push_back({{1, 2, 4}, Chain(again, Chain(gradients, parameters))});
  }
  return all;
}

// Everything in blocks, optimizer state with the host.
DraftPlan BlocksOf(const PlanningProblem& problem, const DeviceMapping& mapping, UpdatePlace update,
                   int layers, int buffers) {
  DraftPlan draft = StreamingDraft(problem);
  draft.mapping = mapping;
  for (size_t index = 0; index < draft.stages.size(); ++index) {
    StageDraft& stage = draft.stages[index];
    stage.weight_run = stage.recompute_run = layers;
    stage.stream_buffers = buffers;
    stage.direct = DirectBackward::kDrop;
    if (!CanStream(problem, StageId(static_cast<int>(index)))) continue;
    stage.update = update;
    std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap);
  }
  return draft;
}

}  // namespace

absl::StatusOr<SimulatedDraft> BestWithWeightsAway(DraftSimulator& simulator,
                                                   SimulatedDraft start) {
  const PlanningProblem& problem = simulator.problem();
  const DraftPlan draft = start.draft;
  const DraftPlan without =
      Replace(draft, Placement::kRecompute, Placement::kKeep, Placement::kKeep);
  const MoveLists again = RecomputedAgain(problem, draft);
  const std::vector<std::vector<WorkerLayer>> spread = SpreadLayers(problem);
  absl::StatusOr<SimulatedDraft> best = start;
  for (const Placement place : PossiblePlacements(problem, draft.mapping)) {
    if (place != Placement::kHostSwap && place != Placement::kPeerSwap) continue;
    const MoveLists parameters = MovesOf(spread, GroupKind::kParameters, place);
    const MoveLists all = Chain(parameters, MovesOf(spread, GroupKind::kGradients, place));
    if (!Fits(start)) {
      best = Better(std::move(best), FitMoves(simulator, draft, all));
      continue;
    }
    if (draft == without) continue;
    if (place == Placement::kHostSwap) {
      const MoveLists hidden = HiddenParameters(simulator, start, parameters);
      best = Better(std::move(best), FitMoves(simulator, without, Chain(hidden, again)));
    }
    best = Better(std::move(best), FitMoves(simulator, without, Chain(all, again)));
  }
  return best;
}

absl::StatusOr<SimulatedDraft> FitWeightBlocks(DraftSimulator& simulator,
                                               const DeviceMapping& mapping, int stream_buffers) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("no block was tried");
  for (const UpdatePlace update : {UpdatePlace::kDevice, UpdatePlace::kHost}) {
    if (update == UpdatePlace::kHost && problem.host_step == Nanos(0)) continue;
    for (const BlockMoves& tried : AllBlockMoves(problem, mapping)) {
      for (const int layers : tried.blocks) {
        const DraftPlan blocks = BlocksOf(problem, mapping, update, layers, stream_buffers);
        best = Better(std::move(best), FitMoves(simulator, blocks, tried.moves));
      }
    }
  }
  return best;
}

}  // namespace siphon
