#include "tests/conformance/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "planner/memory/held_bytes.h"
#include "planner/memory/layer_uses.h"
#include "planner/status.h"
#include "tests/support/same_bits.h"

namespace siphon {
namespace {

reference::Settings ReferenceSettings(const Job& job,
                                      const reference::AccumulationOrders& accumulation) {
  return {.seed = job.seed,
          .optimizer = job.optimizer.name,
          .weight_decay = job.optimizer.weight_decay,
          .beta1 = job.optimizer.beta1,
          .beta2 = job.optimizer.beta2,
          .epsilon = job.optimizer.epsilon,
          .momentum = job.optimizer.momentum,
          .clip_norm = job.clip_norm,
          .threads = job.threads,
          .computed = ComputedType(job.precision),
          .loss_scale = job.loss_scale,
          .accumulation = accumulation};
}

void Train(const Job& job, const reference::AccumulationOrders& accumulation, Expected& expected) {
  reference::Trainer trainer(expected.spec, ReferenceSettings(job, accumulation));
  for (const StepInputs& inputs : expected.batches.steps) {
    // Another one each step, as a warm-up has it.
    expected.learning_rates.push_back(0.004 * static_cast<double>(inputs.step + 1));
    expected.steps.push_back(trainer.Step(inputs, expected.learning_rates.back()));
  }
  expected.evaluation_losses = trainer.Evaluate(expected.batches.steps.back());
  expected.parameters = trainer.Parameters();
  expected.first_moments = trainer.FirstMoments();
  expected.second_moments = trainer.SecondMoments();
}

// More than any group of the tiny models saves.
constexpr Bytes kGroupBytes{1 << 20};

std::vector<Stripe> StripesFor(WorkerId owner, int workers, Bytes bytes) {
  std::vector<LenderWeight> lenders;
  for (int device = 0; device < std::max(workers, 3); ++device) {
    if (device != owner.value) lenders.push_back({DeviceId(device), device + 1});
  }
  return CutStripes(bytes, lenders, Bytes(64));
}

// Groups of the kind in runs of at most so many layers of the stage, at `placements` in turn.
class RunWriter {
 public:
  RunWriter(const Job& job, const ModelSpec& spec, const StagePartition& partition,
            const Schedule& schedule)
      : job_(job), spec_(spec), partition_(partition), schedule_(schedule) {}

  void Write(size_t stage, GroupKind kind, int run, const std::vector<Placement>& placements,
             StagePlan& plan) {
    const StageRange& range = partition_.stages[stage];
    for (int begin = range.begin; begin < range.end; begin += run) {
      PlannedGroup& planned = plan.groups.emplace_back();
      planned.group = {
          .kind = kind, .layers = {begin, std::min(begin + run, range.end)}, .bytes = kGroupBytes};
      if (kind == GroupKind::kActivations) {
        planned.group.input = Bytes(1);
        planned.group.recompute = Nanos(1);
        if (job_.first_tensors) TakeFirstTensors(planned.group);
      }
      planned.choice.placement = placements[turn_++ % placements.size()];
      if (planned.choice.placement != Placement::kPeerSwap) continue;
      planned.choice.stripes =
          StripesFor(schedule_.worker_of_stage[stage], WorkerCount(schedule_), planned.group.bytes);
    }
  }

 private:
  void TakeFirstTensors(TensorGroup& group) {
    const LayerSpec& layer = spec_.layers[group.layers.begin];
    const LayerProfile saves = {.saved = SavedOf(*layer.memory, job_.microbatch, job_.precision)};
    const std::vector<int> counts = FirstTensorsOf(saves);
    if (counts.empty()) return;
    group.first_tensors = counts[first_turn_++ % counts.size()];
    group.bytes = Bytes(0);
    for (int tensor = 0; tensor < group.first_tensors; ++tensor) {
      group.bytes += saves.saved[tensor].bytes;
    }
  }

  const Job& job_;
  const ModelSpec& spec_;
  const StagePartition& partition_;
  const Schedule& schedule_;
  size_t turn_ = 0;
  size_t first_turn_ = 0;
};

MemoryPlan LeaveInRuns(const Job& job, const ModelSpec& spec, const StagePartition& partition,
                       const Schedule& schedule) {
  MemoryPlan memory;
  RunWriter writer(job, spec, partition, schedule);
  for (size_t stage = 0; stage < partition.stages.size(); ++stage) {
    StagePlan& plan = memory.stages.emplace_back();
    plan.update = job.updates[stage % job.updates.size()];
    if (job.leaving_run > 0) {
      writer.Write(stage, GroupKind::kActivations, job.leaving_run, job.leaving, plan);
    }
    if (job.state.empty()) continue;
    for (const GroupKind kind :
         {GroupKind::kParameters, GroupKind::kGradients, GroupKind::kOptimizerState}) {
      writer.Write(stage, kind, std::max(job.leaving_run, 1), job.state, plan);
    }
  }
  return memory;
}

// As jobs have it: before steps that need it.
NormPlace NormPlaceOf(const Job& job) {
  const bool needs_norm = job.clip_norm > 0 || job.loss_scale > 0;
  return needs_norm ? NormPlace::kBeforeSteps : NormPlace::kBehindSteps;
}

absl::StatusOr<TrainingPlan> PlanOf(const Job& job, const ModelSpec& spec,
                                    const StagePartition& partition, const Schedule& compute_only) {
  SIPHON_ASSIGN_OR_RETURN(TrainingPlan plan,
                          PlanAround(spec, partition, compute_only, NormPlaceOf(job)));
  const bool stays = job.leaving_run == 0 && job.state.empty();
  if (stays && job.updates == std::vector{UpdatePlace::kDevice}) return plan;
  plan.memory = LeaveInRuns(job, spec, partition, plan.training);
  for (StagePlan& stage : plan.memory.stages) stage.stream_buffers = job.stream_buffers;
  const std::vector<DirectBackward> direct(partition.stages.size(), DirectBackward::kDrop);
  const std::vector<WeightResidence> weights(partition.stages.size(), job.residence);
  const std::vector<SwapTiming> timing(partition.stages.size(), job.timing);
  const size_t layers = spec.layers.size();
  SIPHON_ASSIGN_OR_RETURN(plan.training,
                          LowerMemoryPlan(std::move(plan.training), plan.memory,
                                          {.timing = timing,
                                           .direct = direct,
                                           .weights = weights,
                                           .state_times = std::vector<StateTimes>(
                                               partition.stages.size(), job.state_times),
                                           .made_ahead = std::vector<int>(layers, job.made_ahead),
                                           .shares = std::vector<int>(layers, job.share)}));
  SIPHON_ASSIGN_OR_RETURN(plan.evaluation, LowerMemoryPlan(std::move(plan.evaluation), plan.memory,
                                                           {.weights = weights}));
  return plan;
}

bool MovesSomething(const Schedule& schedule) {
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      if (action.kind == ActionKind::kDrop || action.kind == ActionKind::kSwapOut) return true;
    }
  }
  return false;
}

void ExpectSameSteps(const Expected& expected, const TrainingPlan& plan,
                     const PipelineResult& result) {
  ASSERT_EQ(result.steps.size(), expected.steps.size());
  for (size_t step = 0; step < expected.steps.size(); ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    EXPECT_TRUE(
        SameBits(expected.steps[step].microbatch_losses, result.steps[step].microbatch_losses));
    EXPECT_TRUE(SameBits(expected.steps[step].loss, result.steps[step].loss));
    const double norm = expected.steps[step].gradient_norm;
    const bool both_nan = std::isnan(norm) && std::isnan(result.steps[step].gradient_norm);
    EXPECT_TRUE(both_nan || SameBits(norm, result.steps[step].gradient_norm));
    EXPECT_EQ(result.steps[step].skipped, expected.steps[step].skipped);
    EXPECT_EQ(result.steps[step].peak_live_microbatches, PeakLiveActivations(plan.training));
  }
}

}  // namespace

Expected RunReference(const Job& job, const reference::AccumulationOrders& accumulation) {
  Expected expected;
  auto spec = BuildModelSpec(job.model);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return expected;
  expected.spec = *std::move(spec);
  expected.batches = MakeTokenBatches(
      expected.spec,
      {.steps = job.steps, .microbatches = job.microbatches, .microbatch = job.microbatch},
      job.seed);
  std::thread([&] { Train(job, accumulation, expected); }).join();
  for (const reference::StepResult& step : expected.steps) {
    if (step.skipped) continue;
    const bool clipped = step.clip_factor < 1;
    EXPECT_EQ(clipped, job.clip_norm != 0) << "clipping is not as the job wants it";
  }
  return expected;
}

reference::AccumulationOrders OrdersOf(const Schedule& schedule, const StagePartition& partition) {
  reference::AccumulationOrders orders;
  bool ascending = true;
  for (size_t stage = 0; stage < partition.stages.size(); ++stage) {
    std::vector<int> order;
    for (const MicrobatchId microbatch :
         AccumulationOrder(schedule, StageId(static_cast<int>(stage)))) {
      order.push_back(microbatch.value);
    }
    ascending &= std::is_sorted(order.begin(), order.end());
    const StageRange& range = partition.stages[stage];
    orders.insert(orders.end(), range.end - range.begin, order);
  }
  return ascending ? reference::AccumulationOrders{} : orders;
}

void ExpectSameBits(const Job& job, const Expected& expected, const StagePartition& partition,
                    const Schedule& compute_only) {
  const auto plan = PlanOf(job, expected.spec, partition, compute_only);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(MovesSomething(plan->training), job.leaving_run > 0 || !job.state.empty());
  const auto result = RunPipeline(job.model, *plan, expected.batches.steps,
                                  {.seed = job.seed,
                                   .optimizer = job.optimizer,
                                   .clip_norm = job.clip_norm,
                                   .precision = job.precision,
                                   .loss_scale = job.loss_scale,
                                   .threads_per_worker = job.threads,
                                   .learning_rates = expected.learning_rates,
                                   .evaluate_after = true});
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectSameSteps(expected, *plan, *result);
  EXPECT_TRUE(SameBits(expected.evaluation_losses, result->evaluation_losses)) << "evaluation";
  EXPECT_TRUE(SameBits(expected.parameters, result->parameters)) << "parameters";
  EXPECT_TRUE(SameBits(expected.first_moments, result->first_moments)) << "first moments";
  EXPECT_TRUE(SameBits(expected.second_moments, result->second_moments)) << "second moments";
  EXPECT_EQ(result->diverged_copies, std::vector<std::string>{});
}

}  // namespace siphon
