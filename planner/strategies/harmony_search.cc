#include "planner/strategies/harmony_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/canonical_devices.h"
#include "planner/lower_schedule.h"
#include "planner/status.h"
#include "planner/strategies/draft_simulator.h"
#include "planner/strategies/lower_memory_plan.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/renumber_plan.h"

namespace siphon {
namespace {

// With more stages a worker than this, not every number of them is tried.
constexpr int kFewChunks = 4;
constexpr int kMostActionsAhead = 1;

std::vector<int> DivisorsOf(int number) {
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

// Stages a worker that are tried.
std::vector<int> ChunksFor(int most) {
  std::vector<int> chunks;
  for (int count = 1; count <= most; ++count) {
    const bool power = (count & (count - 1)) == 0;
    if (most <= kFewChunks || power || count == most) chunks.push_back(count);
  }
  return chunks;
}

// Consecutive layers, each stage ending where its share of all weights is reached; none is empty.
StagePartition CutByWeight(const std::vector<int64_t>& weights, int stages) {
  absl::int128 all = 0;
  for (const int64_t weight : weights) all += weight;
  const auto layers = static_cast<int>(weights.size());
  StagePartition partition;
  absl::int128 sum = 0;
  int layer = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int begin = layer;
    const int last = layers - (stages - 1 - stage);  // one layer at least for each stage behind
    do {
      sum += weights[layer++];
      // Half of the next layer on this side of the border counts as within.
    } while (layer < last && (stage + 1 == stages ||
                              2 * stages * sum + stages * weights[layer] <= 2 * all * (stage + 1)));
    partition.stages.push_back({begin, layer});
  }
  return partition;
}

int64_t TimeOf(const LayerProfile& layer) { return (layer.forward + WholeBackward(layer)).value; }

int64_t BytesOf(const LayerProfile& layer) {
  return (layer.parameters + layer.gradients + layer.optimizer_state + SavedBytes(layer)).value;
}

// Whole stages at once. Copies out until the next forward, copies in right before their use or one
// action earlier; what a pack needs stays while a group of microbatches goes through it.
DraftPlan DraftOf(const PlanningProblem& problem, const HarmonyChoice& choice) {
  const ScheduleOptions& options = choice.shape.options;
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    const auto place = [&](std::vector<Placement>& layers, Placement placement) {
      std::fill(layers.begin(), layers.end(), placement);
    };
    const auto send = [&](std::vector<Placement>& layers, HarmonyAway from) {
      place(layers, choice.away >= from ? Placement::kHostSwap : Placement::kKeep);
    };
    place(stage.activations, choice.activations);
    send(stage.parameters, HarmonyAway::kParameters);
    send(stage.gradients, HarmonyAway::kGradients);
    send(stage.optimizer_state, HarmonyAway::kOptimizerState);
    stage.recompute_run = stage.swap_run = stage.weight_run = 0;
    stage.weights = WeightResidence::kWholeActions;
    stage.timing = {.forwards_to_leave = 1,
                    .actions_to_come_back = choice.actions_ahead,
                    .actions_before_step = choice.actions_ahead,
                    .actions_to_stay = std::max(options.forward_pack, options.backward_pack)};
    stage.direct = DirectBackward::kDrop;
  }
  return draft;
}

Bytes MostExcess(const SimulatedDraft& simulated) {
  return *std::max_element(simulated.excess.begin(), simulated.excess.end());
}

class HarmonySearcher {
 public:
  HarmonySearcher(const PlanningProblem& problem, const HarmonyTools& tools)
      : problem_(problem), tools_(tools) {}

  // Of the plan its step time alone.
  absl::StatusOr<HarmonyPlan> Search() {
    SIPHON_RETURN_IF_ERROR(ListShapes());
    // Those that compute fastest first: the others may not have to be looked at.
    std::stable_sort(shapes_.begin(), shapes_.end(),
                     [](const Shape& a, const Shape& b) { return a.kept < b.kept; });
    for (const Shape& shape : shapes_) {
      if (best_ && best_->planned.simulated.step_time <= shape.kept) break;
      SIPHON_RETURN_IF_ERROR(TryShape(shape));
    }
    if (!best_) return NothingFits();
    best_->simulations = simulations_;
    return *std::move(best_);
  }

 private:
  struct Shape {
    HarmonyChoice choice;
    PlanningProblem problem;
    Nanos kept;  // the step without limits
  };
  absl::Status ListShapes() {
    const int workers = WorkerCount(problem_.schedule);
    const auto layers = static_cast<int>(problem_.profile.layers.size());
    if (layers < workers) {
      return absl::InvalidArgumentError(
          absl::StrCat("harmony has ", layers, " layers for ", workers, " workers"));
    }
    for (const int chunks : ChunksFor(layers / workers)) {
      for (const int larger : DivisorsOf(chunks)) {
        for (const int smaller : DivisorsOf(larger)) {
          SIPHON_RETURN_IF_ERROR(AddPacks(chunks, larger, smaller));
          if (smaller != larger) SIPHON_RETURN_IF_ERROR(AddPacks(chunks, smaller, larger));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddPacks(int chunks, int forward_pack, int backward_pack) {
    const int workers = WorkerCount(problem_.schedule);
    for (const int group : DivisorsOf(problem_.schedule.microbatches)) {
      HarmonyChoice choice{.shape = {.workers = workers,
                                     .chunks = chunks,
                                     .microbatches = problem_.schedule.microbatches,
                                     .options = {.forward_pack = forward_pack,
                                                 .backward_pack = backward_pack,
                                                 .microbatch_group = group}}};
      std::vector<StagePartition> partitions = {Cut(TimeOf, workers * chunks),
                                                Cut(BytesOf, workers * chunks)};
      if (partitions[0] == partitions[1]) partitions.pop_back();
      for (StagePartition& partition : partitions) {
        choice.partition = std::move(partition);
        SIPHON_RETURN_IF_ERROR(AddShape(choice));
      }
    }
    return absl::OkStatus();
  }

  StagePartition Cut(int64_t (*weight)(const LayerProfile&), int stages) const {
    std::vector<int64_t> weights;
    for (const LayerProfile& layer : problem_.profile.layers) weights.push_back(weight(layer));
    return CutByWeight(weights, stages);
  }

  absl::Status AddShape(const HarmonyChoice& choice) {
    Shape shape{.choice = choice, .problem = problem_};
    SIPHON_ASSIGN_OR_RETURN(Schedule built, tools_.build_schedule("harmony_pp", choice.shape));
    built.replicas = problem_.schedule.replicas;
    SIPHON_ASSIGN_OR_RETURN(shape.problem.schedule, InsertCommunication(std::move(built)));
    shape.problem.partition = choice.partition;
    SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(shape.problem));
    SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft kept, Try(shape, choice));
    shape.kept = kept.score.step;
    if (Fits(kept)) Offer(shape, choice, kept);
    shapes_.push_back(std::move(shape));
    return absl::OkStatus();
  }

  // As little away as fits; activations only where weights are not enough.
  absl::Status TryShape(const Shape& shape) {
    constexpr HarmonyAway kAways[] = {HarmonyAway::kOptimizerState, HarmonyAway::kParameters,
                                      HarmonyAway::kGradients};
    HarmonyChoice choice = shape.choice;
    for (const HarmonyAway away : kAways) {
      choice.away = away;
      SIPHON_ASSIGN_OR_RETURN(const bool fits, TryBuffers(shape, choice));
      if (fits) return absl::OkStatus();
    }
    for (const Placement activations : {Placement::kHostSwap, Placement::kRecompute}) {
      choice.activations = activations;
      for (const HarmonyAway away :
           {HarmonyAway::kNothing, HarmonyAway::kOptimizerState, HarmonyAway::kGradients}) {
        choice.away = away;
        SIPHON_ASSIGN_OR_RETURN(const bool fits, TryBuffers(shape, choice));
        if (fits) break;
      }
    }
    return absl::OkStatus();
  }

  // True if the choice fits, with or without double buffers.
  absl::StatusOr<bool> TryBuffers(const Shape& shape, HarmonyChoice choice) {
    bool fits = false;
    for (int ahead = 0; ahead <= kMostActionsAhead; ++ahead) {
      choice.actions_ahead = ahead;
      const absl::StatusOr<SimulatedDraft> tried = Try(shape, choice);
      if (absl::IsResourceExhausted(tried.status())) continue;  // the host's memory
      if (!tried.ok()) return tried.status();
      if (!Fits(*tried)) {
        const Bytes excess = MostExcess(*tried);
        least_excess_ = least_excess_ ? std::min(*least_excess_, excess) : excess;
        break;  // earlier copies do not take less
      }
      fits = true;
      Offer(shape, choice, *tried);
    }
    return fits;
  }

  absl::StatusOr<SimulatedDraft> Try(const Shape& shape, const HarmonyChoice& choice) {
    ++simulations_;
    return DraftSimulator(shape.problem).Run(DraftOf(shape.problem, choice));
  }

  // Keeps the choice if it is the fastest.
  void Offer(const Shape& shape, const HarmonyChoice& choice, const SimulatedDraft& tried) {
    if (best_ && best_->planned.simulated.step_time <= tried.score.step) return;
    best_ = HarmonyPlan{.choice = choice, .problem = shape.problem};
    best_->planned.simulated.step_time = tried.score.step;
  }

  absl::Status NothingFits() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "of ", shapes_.size(), " pack sizes and microbatch groups of harmony none fits",
        least_excess_
            ? absl::StrCat("; the smallest lacks ", FormatBytes(*least_excess_), " on a worker")
            : ""));
  }

  const PlanningProblem& problem_;
  const HarmonyTools& tools_;
  std::vector<Shape> shapes_;
  std::optional<HarmonyPlan> best_;
  std::optional<Bytes> least_excess_;
  int simulations_ = 0;
};

}  // namespace

absl::StatusOr<HarmonyPlan> SearchHarmony(const PlanningProblem& problem,
                                          const HarmonyTools& tools) {
  SIPHON_RETURN_IF_ERROR(CheckTopology(problem.topology));
  const PlanningProblem canonical = RenumberedProblem(problem, CanonicalOrder(problem.topology));
  SIPHON_ASSIGN_OR_RETURN(HarmonyPlan found, HarmonySearcher(canonical, tools).Search());
  found.problem.topology = problem.topology;
  found.problem.mapping = problem.mapping;
  // Once more with all limits.
  SIPHON_ASSIGN_OR_RETURN(found.planned, PlanHarmony(found.problem, found.choice));
  return found;
}

absl::StatusOr<PlannedStep> PlanHarmony(const PlanningProblem& problem,
                                        const HarmonyChoice& choice) {
  return PlanInCanonicalOrder(
      problem, [&](const PlanningProblem& canonical) -> absl::StatusOr<PlannedStep> {
        DraftSimulator simulator(canonical);
        const auto run_on = [&](const DeviceMapping& mapping) {
          DraftPlan draft = DraftOf(canonical, choice);
          draft.mapping = mapping;
          return simulator.Run(std::move(draft));
        };
        SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft, run_on(DraftOf(canonical, choice).mapping));
        return PlanOnBestMap(simulator, std::move(draft), run_on, "harmony");
      });
}

Bytes BytesMoved(const Schedule& schedule, const MemoryPlan& plan, GroupKind kind) {
  Bytes bytes;
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      const bool moves = action.kind == ActionKind::kSwapIn || action.kind == ActionKind::kSwapOut;
      if (!moves || action.group == kWholeStage) continue;
      const TensorGroup& group = plan.stages[action.stage.value].groups[action.group.value].group;
      if (group.kind == kind) bytes += group.bytes;
    }
  }
  return bytes;
}

}  // namespace siphon
