#include "planner/search/start_drafts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/lowering/make_groups.h"
#include "planner/mapping/assign_parking.h"
#include "planner/mapping/parking_demand.h"
#include "planner/search/state_home.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What a worker does after another.
enum class Segment {
  kVersionsToHost,
  kVersionsToLenders,  // of the first layers, as many as lenders have room for
  kStateToHost,
  kHiddenToHost,  // activations of the next layers, as many as pass in a slot
  kToLenders,     // of the next layers, as many as lenders have room for
  kRecompute,     // of all other layers, from the last one back
  kRestToHost,    // of all other layers
};

// Which workers do the first two segments.
enum class Saves { kFullWorkersOnly, kAllWorkers };

struct Recipe {
  Saves saves = Saves::kFullWorkersOnly;
  std::vector<Segment> segments;
};

std::vector<Recipe> Recipes() {
  using enum Segment;
  return {
      {Saves::kFullWorkersOnly, {kHiddenToHost, kToLenders, kStateToHost, kRecompute}},
      {Saves::kFullWorkersOnly, {kStateToHost, kHiddenToHost, kToLenders, kRecompute}},
      {Saves::kFullWorkersOnly, {kToLenders, kStateToHost, kRecompute}},
      {Saves::kFullWorkersOnly, {kStateToHost, kRecompute}},
      {Saves::kFullWorkersOnly, {kHiddenToHost, kRecompute, kStateToHost}},
      {Saves::kFullWorkersOnly, {kStateToHost, kHiddenToHost, kToLenders, kRestToHost}},
      {Saves::kAllWorkers, {kToLenders, kRecompute}},
      {Saves::kAllWorkers, {kRecompute}},
  };
}

// Also with stashed weight versions sent away first.
std::vector<Recipe> RecipesWithVersions() {
  std::vector<Recipe> recipes = Recipes();
  for (const Segment first : {Segment::kVersionsToHost, Segment::kVersionsToLenders}) {
    for (Recipe recipe : Recipes()) {
      recipe.segments.insert(recipe.segments.begin(), first);
      recipes.push_back(std::move(recipe));
    }
  }
  return recipes;
}

// What a backward that computes layers again may hold of them.
enum class BackwardRoom {
  kSome,   // a few layers at a time, and all of a microbatch whose forward was just before
  kLeast,  // one layer
};

class RecipeCook {
 public:
  RecipeCook(DraftSimulator& simulator, const SimulatedDraft& kept)
      : simulator_(simulator),
        problem_(simulator.problem()),
        kept_(kept),
        slot_(kept.simulated.step_time.value / problem_.schedule.microbatches) {
    hidden_ = HiddenHostBytes(problem_, kept.draft.mapping, slot_);
    most_versions_ = PeakWeightVersions(problem_.schedule);
    state_ = OptimizerStateMoves(problem_, Placement::kHostSwap);
    versions_ = WeightVersionMoves(problem_, Placement::kHostSwap);
    layers_ = ActivationMoves(problem_, Placement::kHostSwap, LayerOrder::kFirstLayersFirst);
  }

  bool HasVersions() const {
    return std::any_of(versions_.begin(), versions_.end(),
                       [](const std::vector<DraftMove>& moves) { return !moves.empty(); });
  }

  // `near`: as of FitMoves, of the recipe with another timing.
  absl::StatusOr<SimulatedDraft> Cook(const Recipe& recipe, const SwapTiming& timing,
                                      BackwardRoom room, StateBetweenSteps between,
                                      std::vector<int>& near) {
    DraftPlan draft = kept_.draft;
    const bool least = room == BackwardRoom::kLeast;
    for (StageDraft& stage : draft.stages) {
      stage.recompute_run = least ? 1 : kRecomputeRun;
      stage.direct = least ? DirectBackward::kDrop : DirectBackward::kLeave;
      stage.timing = timing;
    }
    if (between == StateBetweenSteps::kHome) KeepStateHome(problem_, draft);
    SimulatedDraft base = kept_;
    std::vector<size_t> first(layers_.size(), 0);
    if (recipe.saves == Saves::kAllWorkers) {
      for (size_t worker = 0; worker < layers_.size(); ++worker) {
        for (const DraftMove& move : state_[worker]) Apply(move, draft);
        first[worker] = HiddenLayers(worker, 0);
        for (size_t layer = 0; layer < first[worker]; ++layer) Apply(layers_[worker][layer], draft);
      }
      SIPHON_ASSIGN_OR_RETURN(base, simulator_.Run(draft));
      if (Fits(base)) return base;
    }
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> parkable, Parkable(base));
    MoveLists moves;
    for (size_t worker = 0; worker < layers_.size(); ++worker) {
      moves.push_back(MovesOf(recipe.segments, worker, first[worker], parkable[worker]));
    }
    return FitMoves(simulator_, draft, moves, near);
  }

 private:
  // A few layers keep one input; more of them at once would need more room in their backward.
  static constexpr int kRecomputeRun = 4;

  Bytes BytesOf(const DraftMove& move) const {
    const StageRange& stage = problem_.partition.stages[move.stage];
    const int layer = stage.begin + move.layer;
    return GroupOf(problem_.profile, stage, GroupKind::kActivations, {layer, layer + 1}).bytes;
  }

  // How many layers from `first` on the host link can take in a slot.
  size_t HiddenLayers(size_t worker, size_t first) const {
    Bytes bytes;
    size_t layer = first;
    for (; layer < layers_[worker].size(); ++layer) {
      bytes += BytesOf(layers_[worker][layer]);
      if (bytes > hidden_[worker]) break;
    }
    return layer - first;
  }

  // [worker]: how much of what is too much for it lenders have room for.
  absl::StatusOr<std::vector<Bytes>> Parkable(const SimulatedDraft& base) const {
    std::vector<Bytes> parkable(layers_.size());
    if (DeviceCount(problem_.topology) == 0 || problem_.schedule.replicas > 1) return parkable;
    const ParkingDemand demand = PeakParkingDemand(TotalPeaks(base.simulated), problem_.capacity);
    SIPHON_ASSIGN_OR_RETURN(
        const ParkingAssignment assignment,
        AssignParking(problem_.topology, base.draft.mapping, demand, problem_.granule));
    for (size_t worker = 0; worker < parkable.size(); ++worker) {
      parkable[worker] = demand.workers[worker].parked - assignment.owners[worker].unparked;
    }
    return parkable;
  }

  std::vector<DraftMove> MovesOf(const std::vector<Segment>& segments, size_t worker, size_t first,
                                 Bytes parkable) const {
    std::vector<DraftMove> moves;
    size_t next = first;
    const auto take = [&](size_t count, Placement to) {
      for (; count > 0; --count) {
        moves.push_back(layers_[worker][next++]);
        moves.back().to = to;
      }
    };
    for (const Segment segment : segments) {
      switch (segment) {
        case Segment::kVersionsToHost:
          moves.insert(moves.end(), versions_[worker].begin(), versions_[worker].end());
          break;
        case Segment::kVersionsToLenders:
          AddParkedVersions(worker, parkable, moves);
          break;
        case Segment::kStateToHost:
          moves.insert(moves.end(), state_[worker].begin(), state_[worker].end());
          break;
        case Segment::kHiddenToHost:
          take(HiddenLayers(worker, next), Placement::kHostSwap);
          break;
        case Segment::kToLenders:
          take(ParkableLayers(worker, next, parkable), Placement::kPeerSwap);
          break;
        case Segment::kRestToHost:
          take(layers_[worker].size() - next, Placement::kHostSwap);
          break;
        case Segment::kRecompute:
          for (size_t layer = layers_[worker].size(); layer > next; --layer) {
            moves.push_back(layers_[worker][layer - 1]);
            moves.back().to = Placement::kRecompute;
          }
          next = layers_[worker].size();
          break;
      }
    }
    return moves;
  }

  // Takes what they take of `parkable`.
  void AddParkedVersions(size_t worker, Bytes& parkable, std::vector<DraftMove>& moves) const {
    for (DraftMove move : versions_[worker]) {
      const StageRange& stage = problem_.partition.stages[move.stage];
      const Bytes bytes =
          problem_.profile.layers[stage.begin + move.layer].parameters * most_versions_[move.stage];
      if (bytes > parkable) return;
      parkable -= bytes;
      move.to = Placement::kPeerSwap;
      moves.push_back(move);
    }
  }

  size_t ParkableLayers(size_t worker, size_t first, Bytes parkable) const {
    Bytes bytes;
    size_t layer = first;
    for (; layer < layers_[worker].size(); ++layer) {
      const DraftMove& move = layers_[worker][layer];
      bytes += BytesOf(move) * simulator_.away()[move.stage];
      if (bytes > parkable) break;
    }
    return layer - first;
  }

  DraftSimulator& simulator_;
  const PlanningProblem& problem_;
  const SimulatedDraft& kept_;
  const Nanos slot_;
  std::vector<Bytes> hidden_;
  MoveLists state_;
  MoveLists versions_;
  std::vector<int> most_versions_;  // [stage]: at once, the newest too
  MoveLists layers_;                // activations, from the first layers on
};

bool NeedsHost(const Recipe& recipe) {
  return recipe.saves == Saves::kAllWorkers ||
         std::any_of(recipe.segments.begin(), recipe.segments.end(), [](Segment segment) {
           return segment != Segment::kToLenders && segment != Segment::kVersionsToLenders &&
                  segment != Segment::kRecompute;
         });
}

}  // namespace

absl::StatusOr<SimulatedDraft> BestStart(DraftSimulator& simulator, const SimulatedDraft& kept,
                                         StateBetweenSteps state) {
  // Half of a slot for each copy, or all of it and a microbatch more that is on its way.
  constexpr SwapTiming kTimings[] = {
      {.forwards_to_leave = 1, .actions_to_come_back = 1},
      {.forwards_to_leave = 2, .actions_to_come_back = 2, .actions_before_step = 2}};
  constexpr SwapTiming kHomeTiming = {.forwards_to_leave_home = 2, .actions_to_come_home = 4};
  RecipeCook cook(simulator, kept);
  const bool host = ReachesHost(simulator.problem(), kept.draft.mapping);
  absl::StatusOr<SimulatedDraft> best = kept;
  const std::vector<Recipe> recipes = cook.HasVersions() ? RecipesWithVersions() : Recipes();
  for (const BackwardRoom room : {BackwardRoom::kSome, BackwardRoom::kLeast}) {
    for (const Recipe& recipe : recipes) {
      if (NeedsHost(recipe) && !host) continue;
      std::vector<int> near;
      if (state == StateBetweenSteps::kHome) {
        if (recipe.segments.front() != Segment::kStateToHost) continue;
        best = Better(std::move(best), cook.Cook(recipe, kHomeTiming, room, state, near));
        continue;
      }
      for (const SwapTiming& timing : kTimings) {
        best = Better(std::move(best), cook.Cook(recipe, timing, room, state, near));
      }
    }
    if (best.ok() && Fits(*best)) break;
  }
  return best;
}

}  // namespace siphon
