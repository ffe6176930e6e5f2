#include "launch/profile/plan_with_costs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/plan_rings.h"
#include "planner/memory/estimate_runtime.h"
#include "planner/memory/stage_passes.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/stage_cost.h"
#include "planner/status.h"
#include "planner/training_plan.h"

namespace siphon {
namespace {

// None for unit times.
absl::StatusOr<std::optional<ModelProfile>> TimesOf(const PlannedJob& planned,
                                                    const CostSource& source) {
  if (source.profile != nullptr) {
    SIPHON_RETURN_IF_ERROR(CheckProfileFits(*source.profile, planned.model, planned.plan.microbatch,
                                            source.profile_path));
  } else if (source.device == nullptr) {
    return std::optional<ModelProfile>();
  }
  return LayerTimes(planned, source);
}

std::string SourceText(const CostSource& source) {
  if (source.run_times != nullptr) {
    const CostSource other{.profile = source.profile, .device = source.device};
    return absl::StrCat(SourceText(other), ", as the run takes");
  }
  if (source.profile != nullptr) {
    return absl::StrCat(source.profile->model.source, " on ", source.profile->model.device);
  }
  if (source.device != nullptr) return absl::StrCat("calculated for ", source.device->name);
  return std::string(kUnitCosts);
}

// What a pass takes beyond what the simulator counts for it anyway.
Bytes Beyond(const PassMoment& moment, Bytes counted) {
  return std::max(moment.total() - counted, Bytes(0));
}

void SetBytes(const StagePasses& passes, const MemoryByKind& held, bool splits_backward,
              StageCost& cost) {
  cost.parameters = held[MemoryKind::kParameters];
  cost.gradients = held[MemoryKind::kGradients];
  cost.optimizer_state = held[MemoryKind::kOptimizer];
  cost.stash = passes.stash;
  cost.kept_for_weights = passes.kept;
  cost.input = passes.input;
  cost.output = passes.output;
  const Bytes counted = passes.stash + passes.input + passes.output;
  cost.forward_workspace = Beyond(passes.forward, counted);
  cost.backward_workspace = Beyond(passes.backward, counted);
  if (splits_backward) {
    SetHalfWorkspaces(cost, Beyond(passes.input_backward, counted),
                      Beyond(passes.weight_backward, passes.kept));
  }
}

}  // namespace

absl::StatusOr<ModelProfile> LayerTimes(const PlannedJob& planned, const CostSource& source) {
  if (source.run_times != nullptr) return *source.run_times;
  if (source.profile != nullptr) return source.profile->model;
  SIPHON_CHECK(source.device != nullptr, "costs come from somewhere");
  SIPHON_ASSIGN_OR_RETURN(const Precision precision, ParsePrecision(planned.job.train.precision));
  return ProfileFromFirstPrinciples(planned.model, *source.device, planned.plan.microbatch,
                                    precision);
}

absl::StatusOr<PlanText> PlanWithCosts(const PlannedJob& planned, const CostSource& source) {
  const TrainingPlan& plan = planned.plan;
  SIPHON_ASSIGN_OR_RETURN(const std::optional<ModelProfile> times, TimesOf(planned, source));
  std::vector<StageCost> costs =
      times.has_value() ? StageCosts(*times, plan.partition) : UnitStageCosts(plan, planned.model);
  SIPHON_ASSIGN_OR_RETURN(MemoryInputs inputs, MemoryInputsOf(planned));
  if (source.profile != nullptr) inputs.profile = &source.profile->model;
  const std::vector<StagePasses> passes = PassesOfStages(inputs);
  SIPHON_ASSIGN_OR_RETURN(const MemoryEstimate estimate, EstimateRuntime(inputs));
  const bool splits_backward = SplitsBackward(plan.training);
  for (size_t stage = 0; stage < costs.size(); ++stage) {
    SetBytes(passes[stage], estimate.stages[stage].memory, splits_backward, costs[stage]);
  }
  PlanText text = ToPlanText(plan, planned.model, std::move(costs), SourceText(source));
  for (int worker = 0; worker < WorkerCount(plan.training); ++worker) {
    PlanWorker& facts = text.workers[worker];
    if (const auto capacity = WorkerCapacity(planned.job, WorkerId(worker))) {
      facts.capacity = *capacity;
    }
    if (!inputs.communication.empty()) facts.communication = inputs.communication[worker];
  }
  if (source.profile != nullptr) {
    text.link_latency = source.profile->transport.latency;
    text.link_rate = source.profile->transport.rate;
    text.copy_rate = source.profile->transport.copy_rate;
    text.swap_rate = source.profile->transport.swap_rate;
    text.cores_together = source.profile->cores_together;
    if (text.copy_rate.value > 0) text.message_room = kMessagesPerRing;
  }
  return text;
}

}  // namespace siphon
