#include "planner/strategies/mpress/mpress.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/drafts/search_effort.h"
#include "planner/lowering/make_groups.h"
#include "planner/lowering/settle_plan.h"
#include "planner/mapping/map_devices.h"
#include "planner/memory/memory_kind.h"
#include "planner/second_choices/second_choices.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"
#include "planner/strategies/mpress/mpress_assign.h"
#include "planner/strategies/mpress/mpress_emulator.h"
#include "planner/strategies/mpress/mpress_give.h"
#include "planner/strategies/mpress/mpress_times.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

// Of a search; each simulates one step. What is found until then stands. Twice as many make one of
// nine large problems 0.2 % faster.
constexpr int kMostSimulations = 30;
constexpr int kMostOfLarge = 15;
constexpr int kAll = std::numeric_limits<int>::max();

// What a worker gives up first when the first assignment is not enough.
enum class First { kOptimizerState, kHostSwap };

// Everything, and weight versions where there are any: a group a layer, as for all kinds.
MemoryPlan KeepAll(const PlanningProblem& problem) {
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  const std::vector<int> versions = PeakWeightVersions(problem.schedule);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (versions[stage] == 1) continue;
    const StageRange& layers = problem.partition.stages[stage];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      const TensorGroup group =
          GroupOf(problem.profile, layers, GroupKind::kWeightVersions, {layer, layer + 1});
      if (group.bytes > Bytes(0)) plan.stages[stage].groups.push_back({.group = group});
    }
  }
  return plan;
}

class MpressSearch {
 public:
  MpressSearch(const PlanningProblem& problem, const MpressOptions& options)
      : problem_(problem), options_(options), emulator_(problem), keep_(KeepAll(problem)) {}

  absl::StatusOr<PlannedStep> Run() {
    SIPHON_ASSIGN_OR_RETURN(MpressCandidate best, emulator_.Run(keep_));
    if (best.excess > Bytes(0)) SIPHON_RETURN_IF_ERROR(Save(best));
    SIPHON_RETURN_IF_ERROR(CheckFits(best));
    if (problem_.has_step && best.simulated.step_time >= *problem_.has_step) {
      return absl::CancelledError("there is a plan that is as fast");
    }
    SIPHON_ASSIGN_OR_RETURN(
        best.memory,
        WithSecondChoices(problem_, emulator_.mapping(), {best.memory, best.schedule}, best.peaks));
    SettlePlan(best.schedule, problem_.partition, best.memory);
    SimulationInput input = SimulationOf(problem_, emulator_.mapping(), best.memory, best.schedule);
    input.capacity.clear();
    SIPHON_ASSIGN_OR_RETURN(best.simulated, Simulate(input));
    return PlannedStep{.memory = std::move(best.memory),
                       .mapping = emulator_.mapping(),
                       .schedule = std::move(best.schedule),
                       .simulated = std::move(best.simulated),
                       .map = map_};
  }

 private:
  // `best` keeps everything at first.
  absl::Status Save(MpressCandidate& best) {
    facts_ = {.live_intervals = LiveIntervals(problem_, keep_, best.simulated),
              .slot = Nanos(best.simulated.step_time.value / problem_.schedule.microbatches)};
    const std::vector<bool> full = emulator_.FullWorkers(best);
    const std::vector<bool> all(full.size(), true);
    const bool searches = options_.mapping == MpressMapping::kSearched && !problem_.mapping &&
                          DeviceCount(problem_.topology) > 0;
    if (searches) SIPHON_RETURN_IF_ERROR(MapToDevices(best));
    for (const First first : {First::kOptimizerState, First::kHostSwap}) {
      SIPHON_RETURN_IF_ERROR(Search(full, first, best));
      if (full != all) SIPHON_RETURN_IF_ERROR(Search(all, first, best));
    }
    return absl::OkStatus();
  }

  // Figure 6 of the paper, which has devices that are too full and devices with spare memory. Where
  // all are too full, those above the average are the former, and the others lend what they have
  // when their own activations are saved.
  absl::Status MapToDevices(const MpressCandidate& kept) {
    const int workers = WorkerCount(problem_.schedule);
    SIPHON_ASSIGN_OR_RETURN(const MpressCandidate saved,
                            FirstPlan(std::vector<bool>(workers, true), First::kHostSwap));
    Bytes over;  // the workers' together
    for (int worker = 0; worker < workers; ++worker) {
      over += std::max(Bytes(0), Bytes(0) - emulator_.SpareOf(kept, worker));
    }
    const Bytes average(over.value / workers);
    ParkingDemand demand;
    for (int worker = 0; worker < workers; ++worker) {
      const Bytes spare = emulator_.SpareOf(kept, worker);
      if (spare < Bytes(0) - average) {
        const MemoryByKind& peak = kept.simulated.peak[worker];
        const Bytes movable = peak[MemoryKind::kActivations] + peak[MemoryKind::kWeightVersions];
        demand.workers.push_back({.parked = std::min(Bytes(0) - spare, movable)});
      } else {
        const Bytes lendable = std::max(spare, emulator_.SpareOf(saved, worker));
        demand.workers.push_back({.lendable = std::max(Bytes(0), lendable)});
      }
    }
    SIPHON_ASSIGN_OR_RETURN(
        FoundMap found,
        MapDevices(problem_.topology,
                   {.demand = std::move(demand), .neighbours = PipelineNeighbours(workers, 1)}));
    map_ = ProofOf(MappingScore::kSwapTime, found);
    emulator_.MapTo(std::move(found.mapping));
    return absl::OkStatus();
  }

  // From another first plan, for a better one than `best`.
  absl::Status Search(const std::vector<bool>& saves, First first, MpressCandidate& best) {
    const int end = emulator_.simulations() + (IsLarge(problem_) ? kMostOfLarge : kMostSimulations);
    SIPHON_ASSIGN_OR_RETURN(MpressCandidate current, FirstPlan(saves, first));
    bool improved = !IsFarBehind(current, best);
    while (improved) {
      improved = false;
      for (const int worker : ByAddedTime(current.simulated)) {
        if (emulator_.simulations() >= end) break;
        SIPHON_ASSIGN_OR_RETURN(improved, Improve(worker, current));
        if (improved) break;
      }
    }
    if (IsBetter(current, best)) best = std::move(current);
    return absl::OkStatus();
  }

  // What the simulations of one search do not make up for.
  static bool IsFarBehind(const MpressCandidate& candidate, const MpressCandidate& best) {
    const Nanos step = best.simulated.step_time;
    return best.excess == Bytes(0) && candidate.simulated.step_time > step + Nanos(step.value / 8);
  }

  // The first assignment, made to fit as far as that goes.
  absl::StatusOr<MpressCandidate> FirstPlan(const std::vector<bool>& saves, First first) {
    emulator_.ForgetDirectDrops();
    SIPHON_ASSIGN_OR_RETURN(
        MpressCandidate current,
        emulator_.Run(AssignWithoutPeers(problem_, emulator_.mapping(), keep_, facts_, saves)));
    while (current.excess > Bytes(0)) {
      MemoryPlan memory = current.memory;
      bool changes = false;
      for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
        const Bytes spare = emulator_.SpareOf(current, worker);
        if (spare < Bytes(0)) changes = SaveMore(WorkerId(worker), spare, first, memory) || changes;
      }
      if (!changes) break;
      SIPHON_ASSIGN_OR_RETURN(current, emulator_.Run(std::move(memory)));
    }
    return current;
  }

  // For a worker that is still too full: activations dropped although their backward comes at once;
  // optimizer state to the host; no activations to the host, which are on their way for a while and
  // meanwhile take room. Returns whether there was anything left to do.
  bool SaveMore(WorkerId worker, Bytes spare, First first, MemoryPlan& memory) {
    const bool drops = emulator_.DropDirectly(worker);
    if (first == First::kHostSwap &&
        RecomputeInstead(problem_.schedule, worker, kAll, memory) > 0) {
      return true;
    }
    if (MayMoveState(worker)) {
      const Bytes saved = SendOptimizerToHost(problem_.schedule, worker, Bytes(0) - spare, memory);
      if (saved > Bytes(0)) return true;
    }
    return RecomputeInstead(problem_.schedule, worker, kAll, memory) > 0 || drops;
  }

  // Updates in the middle of the step need the optimizer state all the time; without a step at the
  // end nobody brings it back.
  bool MayMoveState(WorkerId worker) const {
    const std::vector<Action>& program = problem_.schedule.programs[worker.value];
    return std::any_of(program.begin(), program.end(),
                       [](const Action& action) { return action.kind == ActionKind::kStep; });
  }

  // Tries to give all groups of the worker to lenders, then fewer; then, as often, to recompute
  // what goes to the host, in case the host is less hidden than it seemed. Returns whether a try
  // was better.
  absl::StatusOr<bool> Improve(int worker, MpressCandidate& current) {
    int most = kAll;
    while (most > 0) {
      GivenToLenders given =
          GiveToLenders(emulator_, current, facts_.live_intervals, worker, most, options_.striping);
      if (given.groups == 0) break;
      SIPHON_ASSIGN_OR_RETURN(const bool better, Try(std::move(given.memory), current));
      if (better) return true;
      most = given.groups / 2;
    }
    most = kAll;
    while (most > 0) {
      MemoryPlan memory = current.memory;
      const int changed = RecomputeInstead(problem_.schedule, WorkerId(worker), most, memory);
      SIPHON_ASSIGN_OR_RETURN(const bool better,
                              changed > 0 ? Try(std::move(memory), current) : false);
      if (better) return true;
      most = changed / 2;
    }
    return false;
  }

  absl::StatusOr<bool> Try(MemoryPlan memory, MpressCandidate& current) {
    absl::StatusOr<MpressCandidate> next = emulator_.Run(std::move(memory));
    if (absl::IsResourceExhausted(next.status())) return false;
    SIPHON_RETURN_IF_ERROR(next.status());
    if (!IsBetter(*next, current)) return false;
    current = *std::move(next);
    return true;
  }

  // Workers by what recomputation and waits for swaps add to their time, most first; those to which
  // they add nothing are left out.
  std::vector<int> ByAddedTime(const SimulatedStep& step) const {
    std::vector<std::pair<Nanos, int>> added;
    for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
      Nanos time = step.exposed_waits[worker][static_cast<size_t>(WaitCause::kSwap)];
      for (const Interval& interval : step.workers[worker]) {
        const bool recomputes =
            interval.kind == IntervalKind::kBusy && interval.action.kind == ActionKind::kRecompute;
        if (recomputes) time += interval.end - interval.begin;
      }
      if (time > Nanos(0)) added.emplace_back(time, worker);
    }
    std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) {
      return std::make_pair(b.first, a.second) < std::make_pair(a.first, b.second);
    });
    std::vector<int> workers;
    for (const auto& [time, worker] : added) workers.push_back(worker);
    return workers;
  }

  absl::Status CheckFits(const MpressCandidate& candidate) const {
    if (candidate.excess == Bytes(0)) return absl::OkStatus();
    int fullest = 0;
    for (int worker = 1; worker < WorkerCount(problem_.schedule); ++worker) {
      const Bytes spare = emulator_.SpareOf(candidate, worker);
      if (spare < emulator_.SpareOf(candidate, fullest)) fullest = worker;
    }
    const auto [needed, has] = FormatApart(candidate.peaks[fullest], problem_.capacity[fullest]);
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", fullest, " needs ", needed,
                     " at its fullest under mpress, its capacity is ", has));
  }

  const PlanningProblem& problem_;
  const MpressOptions options_;
  MpressEmulator emulator_;
  const MemoryPlan keep_;
  MpressFacts facts_;
  std::optional<MapProof> map_;
};

}  // namespace

absl::StatusOr<PlannedStep> PlanMpress(const PlanningProblem& problem,
                                       const MpressOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  if (problem.schedule.replicas > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("mpress plans for one pipeline; the schedule has ", problem.schedule.replicas,
                     " replicas"));
  }
  return MpressSearch(problem, options).Run();
}

absl::StatusOr<PlannedStep> PlanMpress(const PlanningProblem& problem) {
  return PlanMpress(problem, MpressOptions());
}

}  // namespace siphon
