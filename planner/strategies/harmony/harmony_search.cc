#include "planner/strategies/harmony/harmony_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/canonical_devices.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/lower_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/stage_cost.h"
#include "planner/status.h"
#include "planner/strategies/harmony/harmony_room.h"
#include "planner/strategies/harmony/harmony_shapes.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/renumber_plan.h"

namespace siphon {
namespace {

// Copies begin so many actions early at most: what they hide under takes longer from then on.
constexpr int kMostActionsAhead = 32;
// Steps are simulated on one map; on their best ones the order of these may be another.
constexpr int kMostFinalists = 3;
// How much slower than the best one a choice may be that is tried with still earlier copies.
constexpr double kWorthwhile = 1.1;

constexpr Nanos kNoStep{std::numeric_limits<int64_t>::max()};

// Whole stages at once, but for their optimizer steps. Copies out until the next forward, copies in
// right before their use or some actions earlier; what a pack needs stays while a group of
// microbatches goes through it.
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
    stage.recompute_run = stage.weight_run = 0;
    stage.swap_run = choice.updates == HarmonyUpdates::kByLayer ? 1 : 0;
    stage.weights = WeightResidence::kWholeActions;
    stage.timing = {.forwards_to_leave = 1,
                    .actions_to_come_back = choice.buffers.passes_ahead,
                    .actions_before_step = choice.buffers.steps_ahead,
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
      : problem_(problem), tools_(tools), shapes_(problem) {}

  // The fastest as listed and the fastest of all, at most kMostFinalists of each; of their plans
  // the step time alone.
  absl::StatusOr<std::vector<HarmonyPlan>> Search() {
    SIPHON_RETURN_IF_ERROR(ListShapes());
    // Those that compute fastest first: the others may not have to be looked at.
    std::stable_sort(listed_.begin(), listed_.end(),
                     [](const Listed& a, const Listed& b) { return a.kept < b.kept; });
    for (const Listed& listed : listed_) {
      if (!finalists_.empty() && BestStep() <= listed.kept) break;
      SIPHON_RETURN_IF_ERROR(TryShape(listed.choice));
    }
    if (finalists_.empty()) SIPHON_RETURN_IF_ERROR(TryHopeless());
    if (finalists_.empty()) return NothingFits();
    const std::vector<HarmonyPlan> listed = finalists_;
    SIPHON_RETURN_IF_ERROR(TryGroupsApart());
    for (const HarmonyPlan& plan : listed) {
      if (!IsFinalist(plan.choice)) finalists_.push_back(plan);
    }
    for (HarmonyPlan& plan : finalists_) plan.simulations = simulations_;
    return std::move(finalists_);
  }

 private:
  struct Listed {
    HarmonyChoice choice;
    // The step without limits; of a shape that cannot fit not known.
    Nanos kept = kNoStep;
  };
  struct Shape {
    PlanningProblem problem;
    std::vector<StageCost> costs;
  };
  // What cannot fit, and is not simulated while there may be something that does.
  struct Hopeless {
    Bytes excess;  // at least
    HarmonyChoice choice;
  };

  absl::Status ListShapes() {
    const int workers = WorkerCount(problem_.schedule);
    const auto layers = static_cast<int>(problem_.profile.layers.size());
    if (layers < workers) {
      return absl::InvalidArgumentError(
          absl::StrCat("harmony has ", layers, " layers for ", workers, " workers"));
    }
    for (const HarmonyChoice& choice : shapes_.Listed()) {
      SIPHON_RETURN_IF_ERROR(AddShape(choice));
    }
    return absl::OkStatus();
  }

  // Groups forward and backward apart: one of the two larger than in the fastest, and than in what
  // is among these then. What fits only with groups apart is not looked for: with the smaller of
  // the two both ways it would take no more.
  absl::Status TryGroupsApart() {
    std::vector<HarmonyChoice> grown;
    const auto is_new = [&](const HarmonyPlan& plan) {
      return std::none_of(grown.begin(), grown.end(), [&](const HarmonyChoice& known) {
        return IsSameShape(known, plan.choice);
      });
    };
    for (;;) {
      const auto next = std::find_if(finalists_.begin(), finalists_.end(), is_new);
      if (next == finalists_.end()) return absl::OkStatus();
      grown.push_back(next->choice);
      for (const HarmonyChoice& choice : shapes_.WithLargerGroup(grown.back())) {
        if (IsListed(choice)) continue;
        SIPHON_RETURN_IF_ERROR(AddShape(choice));
        if (listed_.back().kept >= BestStep()) continue;
        SIPHON_RETURN_IF_ERROR(TryLike(grown.back(), choice));
      }
    }
  }

  // What is away in `known`, in a shape that takes no less: with less away it would not fit either.
  absl::Status TryLike(const HarmonyChoice& known, HarmonyChoice choice) {
    SIPHON_ASSIGN_OR_RETURN(const Shape shape, Build(choice));
    choice.away = known.away;
    choice.activations = known.activations;
    return TryUpdates(shape, choice).status();
  }

  bool IsListed(const HarmonyChoice& choice) const {
    return std::any_of(listed_.begin(), listed_.end(),
                       [&](const Listed& listed) { return IsSameShape(listed.choice, choice); });
  }

  bool IsFinalist(const HarmonyChoice& choice) const {
    return std::any_of(finalists_.begin(), finalists_.end(),
                       [&](const HarmonyPlan& plan) { return IsSameShape(plan.choice, choice); });
  }

  static bool IsSameShape(const HarmonyChoice& a, const HarmonyChoice& b) {
    return a.partition == b.partition && a.shape.options == b.shape.options;
  }

  absl::Status AddShape(const HarmonyChoice& choice) {
    SIPHON_ASSIGN_OR_RETURN(const Shape shape, Build(choice));
    HarmonyChoice least = choice;
    least.away = HarmonyAway::kGradients;
    least.activations = Placement::kRecompute;
    Listed& listed = listed_.emplace_back(Listed{choice});
    if (LeastExcess(shape.problem, shape.costs, least) > Bytes(0)) return absl::OkStatus();
    SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft kept, Try(shape, choice));
    listed.kept = kept.score.step;
    if (Fits(kept)) Offer(shape, choice, kept);
    return absl::OkStatus();
  }

  absl::StatusOr<Shape> Build(const HarmonyChoice& choice) const {
    Shape shape{.problem = problem_};
    SIPHON_ASSIGN_OR_RETURN(Schedule built, tools_.build_schedule("harmony_pp", choice.shape));
    built.replicas = problem_.schedule.replicas;
    SIPHON_ASSIGN_OR_RETURN(shape.problem.schedule, InsertCommunication(std::move(built)));
    shape.problem.partition = choice.partition;
    SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(shape.problem));
    shape.costs = StageCosts(shape.problem.profile, shape.problem.partition);
    return shape;
  }

  // As little away as fits; activations only where weights are not enough.
  absl::Status TryShape(HarmonyChoice choice) {
    SIPHON_ASSIGN_OR_RETURN(const Shape shape, Build(choice));
    constexpr HarmonyAway kAways[] = {HarmonyAway::kOptimizerState, HarmonyAway::kParameters,
                                      HarmonyAway::kGradients};
    for (const HarmonyAway away : kAways) {
      choice.away = away;
      SIPHON_ASSIGN_OR_RETURN(const bool fits, TryUpdates(shape, choice));
      if (fits) return absl::OkStatus();
    }
    for (const Placement activations : {Placement::kHostSwap, Placement::kRecompute}) {
      choice.activations = activations;
      for (const HarmonyAway away :
           {HarmonyAway::kNothing, HarmonyAway::kOptimizerState, HarmonyAway::kGradients}) {
        choice.away = away;
        SIPHON_ASSIGN_OR_RETURN(const bool fits, TryUpdates(shape, choice));
        if (fits) break;
      }
    }
    return absl::OkStatus();
  }

  // True if the choice fits. Layers that step one after the other may leave room for double
  // buffers.
  absl::StatusOr<bool> TryUpdates(const Shape& shape, HarmonyChoice choice) {
    SIPHON_ASSIGN_OR_RETURN(const Fit fit, TryBuffers(shape, choice));
    const bool differs = choice.shape.workers * choice.shape.chunks <
                             static_cast<int>(problem_.profile.layers.size()) &&
                         choice.away != HarmonyAway::kNothing &&
                         choice.activations != Placement::kHostSwap;
    if (differs && fit == Fit::kOnce) {
      choice.updates = HarmonyUpdates::kByLayer;
      SIPHON_RETURN_IF_ERROR(TryBuffers(shape, choice).status());
    }
    return fit != Fit::kNot;
  }

  // Not at all, without double buffers, or with them.
  enum class Fit { kNot, kOnce, kTwice };
  absl::StatusOr<Fit> TryBuffers(const Shape& shape, HarmonyChoice choice) {
    const Bytes excess = LeastExcess(shape.problem, shape.costs, choice);
    if (excess > Bytes(0)) {
      hopeless_.push_back({excess, choice});
      return Fit::kNot;
    }
    SIPHON_ASSIGN_OR_RETURN(Nanos step, TryChoice(shape, choice));
    if (step == kNoStep) return Fit::kNot;  // earlier copies do not take less
    choice.buffers = {.passes_ahead = 1, .steps_ahead = 1};
    SIPHON_ASSIGN_OR_RETURN(const Nanos twice, TryChoice(shape, choice));
    const Fit fit = twice == kNoStep ? Fit::kOnce : Fit::kTwice;
    if (twice < step) {
      step = twice;
    } else {
      choice.buffers = {};
    }
    if (static_cast<double>(step.value) > kWorthwhile * static_cast<double>(BestStep().value)) {
      return fit;
    }
    SIPHON_RETURN_IF_ERROR(BeginEarlier(shape, &HarmonyBuffers::steps_ahead, choice, step));
    SIPHON_RETURN_IF_ERROR(BeginEarlier(shape, &HarmonyBuffers::passes_ahead, choice, step));
    return fit;
  }

  // As early as it still makes the step shorter, and fits. `step` is the choice's.
  absl::Status BeginEarlier(const Shape& shape, int HarmonyBuffers::*ahead, HarmonyChoice& choice,
                            Nanos& step) {
    for (int& actions = choice.buffers.*ahead; actions < kMostActionsAhead;) {
      const int before = actions;
      actions = std::max(1, 2 * before);
      SIPHON_ASSIGN_OR_RETURN(const Nanos earlier, TryChoice(shape, choice));
      if (earlier >= step) {
        actions = before;
        return absl::OkStatus();
      }
      step = earlier;
    }
    return absl::OkStatus();
  }

  // The step of the choice if it fits as it is; kNoStep otherwise.
  absl::StatusOr<Nanos> TryChoice(const Shape& shape, const HarmonyChoice& choice) {
    const absl::StatusOr<SimulatedDraft> tried = Try(shape, choice);
    if (absl::IsResourceExhausted(tried.status())) return kNoStep;  // the host's memory
    if (!tried.ok()) return tried.status();
    if (Fits(*tried)) {
      Offer(shape, choice, *tried);
      return tried->score.step;
    }
    const Bytes excess = MostExcess(*tried);
    least_excess_ = least_excess_ ? std::min(*least_excess_, excess) : excess;
    return kNoStep;
  }

  // For how much the smallest lacks.
  absl::Status TryHopeless() {
    std::stable_sort(hopeless_.begin(), hopeless_.end(),
                     [](const Hopeless& a, const Hopeless& b) { return a.excess < b.excess; });
    for (const Hopeless& hopeless : hopeless_) {
      if (least_excess_ && *least_excess_ <= hopeless.excess) break;
      SIPHON_ASSIGN_OR_RETURN(const Shape shape, Build(hopeless.choice));
      SIPHON_RETURN_IF_ERROR(TryChoice(shape, hopeless.choice).status());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SimulatedDraft> Try(const Shape& shape, const HarmonyChoice& choice) {
    ++simulations_;
    return DraftSimulator(shape.problem).Run(DraftOf(shape.problem, choice));
  }

  // Keeps the choice if it is among the fastest, of each shape and partition one.
  void Offer(const Shape& shape, const HarmonyChoice& choice, const SimulatedDraft& tried) {
    const Nanos step = tried.score.step;
    const auto same =
        std::find_if(finalists_.begin(), finalists_.end(),
                     [&](const HarmonyPlan& plan) { return IsSameShape(plan.choice, choice); });
    if (same != finalists_.end()) {
      if (StepOf(*same) <= step) return;
      finalists_.erase(same);
    }
    const auto place = std::find_if(finalists_.begin(), finalists_.end(),
                                    [&](const HarmonyPlan& plan) { return step < StepOf(plan); });
    if (place - finalists_.begin() >= kMostFinalists) return;
    HarmonyPlan plan{.choice = choice, .problem = shape.problem};
    plan.planned.simulated.step_time = step;
    finalists_.insert(place, std::move(plan));
    if (finalists_.size() > kMostFinalists) finalists_.pop_back();
  }

  static Nanos StepOf(const HarmonyPlan& plan) { return plan.planned.simulated.step_time; }
  Nanos BestStep() const { return finalists_.empty() ? kNoStep : StepOf(finalists_.front()); }

  absl::Status NothingFits() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "of ", listed_.size(), " pack sizes and microbatch groups of harmony none fits",
        least_excess_
            ? absl::StrCat("; the smallest lacks ", FormatBytes(*least_excess_), " on a worker")
            : ""));
  }

  const PlanningProblem& problem_;
  const HarmonyTools& tools_;
  HarmonyShapes shapes_;
  std::vector<Listed> listed_;
  std::vector<Hopeless> hopeless_;
  std::vector<HarmonyPlan> finalists_;
  std::optional<Bytes> least_excess_;
  int simulations_ = 0;
};

}  // namespace

absl::StatusOr<HarmonyPlan> SearchHarmony(const PlanningProblem& problem,
                                          const HarmonyTools& tools) {
  SIPHON_RETURN_IF_ERROR(CheckTopology(problem.topology));
  const PlanningProblem canonical = RenumberedProblem(problem, CanonicalOrder(problem.topology));
  SIPHON_ASSIGN_OR_RETURN(std::vector<HarmonyPlan> finalists,
                          HarmonySearcher(canonical, tools).Search());
  // Once more with all limits, each on its best map.
  std::optional<HarmonyPlan> best;
  absl::Status refused;
  for (HarmonyPlan& found : finalists) {
    found.problem.topology = problem.topology;
    found.problem.mapping = problem.mapping;
    absl::StatusOr<PlannedStep> planned = PlanHarmony(found.problem, found.choice);
    if (!planned.ok()) {
      refused.Update(planned.status());
      continue;
    }
    found.planned = *std::move(planned);
    const Nanos step = found.planned.simulated.step_time;
    if (!best || step < best->planned.simulated.step_time) best = std::move(found);
  }
  if (!best) return refused;
  return *std::move(best);
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
