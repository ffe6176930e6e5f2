#include "planner/strategies/start_drafts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/mapping/assign_parking.h"
#include "planner/mapping/parking_demand.h"
#include "planner/status.h"
#include "planner/strategies/fit_moves.h"
#include "planner/strategies/make_groups.h"
#include "planner/strategies/move_lists.h"
#include "planner/strategies/state_home.h"

namespace siphon {
namespace {

constexpr Bytes kUnlimited{std::numeric_limits<int64_t>::max()};
constexpr int64_t kNanosPerSecond = 1'000'000'000;

// The slower direction, each while the other runs.
BytesPerSecond RoundTripRate(const PcieSwitch& uplink) {
  const auto both = [](BytesPerSecond alone, BytesPerSecond both) {
    return both > BytesPerSecond(0) ? both : alone;
  };
  const BytesPerSecond out = both(uplink.to_host, uplink.to_host_both);
  const BytesPerSecond in = both(uplink.from_host, uplink.from_host_both);
  if (out == BytesPerSecond(0) || in == BytesPerSecond(0)) return std::max(out, in);
  return std::min(out, in);
}

Bytes BytesIn(Nanos slot, BytesPerSecond rate, int sharers) {
  if (rate == BytesPerSecond(0)) return kUnlimited;
  const absl::int128 bytes =
      absl::int128(rate.value) * slot.value / (absl::int128(kNanosPerSecond) * sharers);
  return std::min(kUnlimited, Bytes(static_cast<int64_t>(bytes)));
}

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

std::vector<Bytes> HiddenHostBytes(const PlanningProblem& problem, const DeviceMapping& mapping,
                                   Nanos slot) {
  const int workers = WorkerCount(problem.schedule);
  std::vector<Bytes> hidden(static_cast<size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    if (DeviceCount(problem.topology) == 0) {
      hidden[worker] = BytesIn(slot, problem.transport.host_rate, workers);
      continue;
    }
    const auto uplink = SwitchOf(problem.topology, mapping.device_of_worker[worker]);
    if (!uplink) continue;
    const auto shares = [&](DeviceId device) {
      return SwitchOf(problem.topology, device) == uplink;
    };
    const auto sharers =
        std::count_if(mapping.device_of_worker.begin(), mapping.device_of_worker.end(), shares);
    hidden[worker] =
        BytesIn(slot, RoundTripRate(problem.topology.switches[*uplink]), static_cast<int>(sharers));
  }
  return hidden;
}

bool ReachesHost(const PlanningProblem& problem, const DeviceMapping& mapping) {
  if (DeviceCount(problem.topology) == 0) return true;
  return std::all_of(
      mapping.device_of_worker.begin(), mapping.device_of_worker.end(),
      [&](DeviceId device) { return SwitchOf(problem.topology, device).has_value(); });
}

bool HostMayStep(const PlanningProblem& problem, const DeviceMapping& mapping) {
  return problem.host_step > Nanos(0) && ReachesHost(problem, mapping);
}

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
