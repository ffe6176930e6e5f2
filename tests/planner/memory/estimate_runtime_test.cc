#include "planner/memory/estimate_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/memory/stage_passes.h"
#include "planner/stage_cost.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Three layers of 10, 20 and 30 parameters; 4, 8 and 2 floats between and behind them.
ModelSpec ThreeLayers() {
  const auto floats = [](int64_t count) { return TensorSpec{DType::kFloat32, {count}}; };
  ModelSpec model;
  model.options.kind = "by hand";
  model.layers = {{.name = "a", .parameters = {{"a", {10}}}, .outputs = {floats(4)}},
                  {.name = "b", .parameters = {{"b", {20}}}, .outputs = {floats(8)}},
                  {.name = "c", .parameters = {{"c", {30}}}}};
  // b saves its input and 5 floats, and needs 3 floats and its gradient of 20 to go back.
  model.layers[0].memory = LayerMemory{};
  model.layers[1].memory =
      LayerMemory{.saved = {{.name = "x", .sample = floats(4), .storage = SavedStorage::kInput},
                            {.name = "inner", .sample = floats(5)}},
                  .backward = {{Bytes(12), Bytes(80)}}};
  model.layers[2].memory =
      LayerMemory{.saved = {{.name = "x", .sample = floats(8), .storage = SavedStorage::kInput}},
                  .backward = {{Bytes(0), Bytes(120)}}};
  return model;
}

Schedule Lowered(const std::string& name, int workers, int microbatches) {
  const Schedule schedule =
      BuildSchedule(name, {.workers = workers, .microbatches = microbatches}).value();
  return AppendOptimizerStep(InsertCommunication(schedule).value(), {});
}

TEST(EstimateRuntime, CountsThreeLayersOnOneWorkerAsByHand) {
  const ModelSpec model = ThreeLayers();
  const StagePartition partition = {{{0, 3}}};
  const Schedule schedule = Lowered("gpipe", 1, 2);
  const MemoryEstimate estimate = EstimateRuntime({.model = &model,
                                                   .partition = &partition,
                                                   .schedule = &schedule,
                                                   .microbatch = 1,
                                                   .communication = {Bytes(1000)}})
                                      .value();
  const MemoryByKind& memory = estimate.stages[0].memory;
  EXPECT_EQ(memory[MemoryKind::kParameters], Bytes(4 * 60));
  EXPECT_EQ(memory[MemoryKind::kGradients], Bytes(4 * 60));
  EXPECT_EQ(memory[MemoryKind::kOptimizer], Bytes(2 * 4 * 60 + 4));  // and the number of updates
  EXPECT_EQ(memory[MemoryKind::kCommunication], Bytes(1000));
  // Fullest is the first backward of c: both microbatches' 16 + 20 + 32 bytes, and 120 for its
  // gradient. The last layer ends in the loss, so that nothing comes in.
  EXPECT_EQ(memory[MemoryKind::kActivations], Bytes(2 * 68));
  EXPECT_EQ(memory[MemoryKind::kWorkspace], Bytes(120));
  EXPECT_EQ(memory[MemoryKind::kBoundary], Bytes(0));
  EXPECT_EQ(estimate.stages[0].live_microbatches, 2);
}

TEST(EstimateRuntime, HoldsBoundariesWhileTheyAreSentAndUsed) {
  const ModelSpec model = ThreeLayers();
  const StagePartition partition = {{{0, 1}, {1, 3}}};
  const Schedule schedule = Lowered("gpipe", 2, 3);
  const MemoryEstimate estimate =
      EstimateRuntime({.model = &model, .partition = &partition, .schedule = &schedule}).value();
  // Stage 0 saves nothing: while a microbatch goes forward, its output of 16 bytes and the one
  // before, which is being sent.
  EXPECT_EQ(estimate.stages[0].memory[MemoryKind::kActivations], Bytes(0));
  EXPECT_EQ(estimate.stages[0].memory[MemoryKind::kBoundary], Bytes(32));
  // Stage 1 keeps what it received, 16 of 68 bytes a microbatch.
  EXPECT_EQ(estimate.stages[1].memory[MemoryKind::kActivations], Bytes(3 * 68));
  EXPECT_EQ(estimate.stages[1].memory[MemoryKind::kWorkspace], Bytes(120));
}

TEST(EstimateRuntime, CountsATensorOnceThatTwoLayersSave) {
  ModelSpec model = ThreeLayers();
  model.layers[0].memory = LayerMemory{
      .saved = {{.name = "y", .sample = {DType::kFloat32, {4}}, .storage = SavedStorage::kOutput}}};
  const StagePartition partition = {{{0, 3}}};
  const Schedule schedule = Lowered("1f1b", 1, 1);
  const MemoryEstimate estimate =
      EstimateRuntime({.model = &model, .partition = &partition, .schedule = &schedule}).value();
  EXPECT_EQ(estimate.stages[0].memory[MemoryKind::kActivations], Bytes(68));
  EXPECT_THAT(estimate.stages[0].layers[0].saved, ElementsAre(SavedTensor{"y", Bytes(16)}));
  EXPECT_THAT(estimate.stages[0].layers[1].saved, ElementsAre(SavedTensor{"inner", Bytes(20)}));
}

TEST(EstimateRuntime, TakesMeasuredSizesBeforeAllOthers) {
  const ModelSpec model = ThreeLayers();
  const StagePartition partition = {{{0, 3}}};
  const Schedule schedule = Lowered("1f1b", 1, 1);
  ModelProfile profile{.microbatch = 1};
  profile.layers = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  profile.layers[1].saved = {{"all", Bytes(700)}};
  profile.layers[1].backward_workspace = Bytes(50);
  const MemoryEstimate estimate =
      EstimateRuntime(
          {.model = &model, .partition = &partition, .schedule = &schedule, .profile = &profile})
          .value();
  EXPECT_EQ(estimate.stages[0].memory[MemoryKind::kActivations], Bytes(700));
  EXPECT_EQ(estimate.stages[0].memory[MemoryKind::kWorkspace], Bytes(50));
  EXPECT_EQ(estimate.stages[0].layers[1].source, MemorySource::kMeasured);
}

// In units of sequence x hidden: the input, the normed input, query, key and value (3), attended,
// the middle, the normed middle, and the perceptron's width twice (8).
TEST(EstimateRuntime, SharesSavedTensorsAsTheCostsOfStagesDo) {
  const ModelSpec model = ThreeLayers();
  const StagePartition partition = {{{0, 2}, {2, 3}}};
  const Schedule schedule = Lowered("gpipe", 2, 2);
  ModelProfile profile{.microbatch = 1};
  profile.layers = {{.name = "a",
                     .boundary = Bytes(16),
                     .saved = {{"all", Bytes(50)}},
                     .saved_output = Bytes(16)},
                    {.name = "b",
                     .boundary = Bytes(32),
                     .saved = {{"all", Bytes(70)}},
                     .saved_input = Bytes(16),
                     .saved_output = Bytes(32)},
                    {.name = "c", .saved = {{"all", Bytes(40)}}, .saved_input = Bytes(32)}};
  const std::vector<StagePasses> passes = PassesOfStages({.model = &model,
                                                          .partition = &partition,
                                                          .schedule = &schedule,
                                                          .microbatch = 1,
                                                          .profile = &profile});
  const std::vector<StageCost> costs = StageCosts(profile, partition);
  EXPECT_EQ(passes[0].stash, Bytes(50 + 70 - 16));
  EXPECT_EQ(passes[1].stash, Bytes(40));
  for (size_t stage = 0; stage < costs.size(); ++stage) {
    EXPECT_EQ(costs[stage].stash, passes[stage].stash);
  }
}

TEST(EstimateRuntime, KeepsSixteenHiddenStatesOfAGptBlockWithFusedAttention) {
  const ModelSpec model =
      BuildModelSpec({.layers = 1, .hidden = 64, .heads = 4, .sequence_length = 32}).value();
  const LayerMemory& block = *model.layers[1].memory;
  Bytes saved;
  for (const SavedTensorSpec& tensor : block.saved) saved += SizeOf(tensor.sample);
  constexpr int64_t kHidden = 32 * 64;
  constexpr int64_t kStatistics = 4 * 32 + 4 * 32;  // two norms' mean and deviation; log sums
  EXPECT_EQ(saved, Bytes(4 * (16 * kHidden + kStatistics)));
}

TEST(EstimateRuntime, KeepsMasksAndProbabilitiesWithDropout) {
  const ModelSpec model =
      BuildModelSpec({.layers = 1, .hidden = 64, .heads = 4, .sequence_length = 32, .dropout = 0.1})
          .value();
  Bytes saved;
  std::vector<std::string> names;
  for (const SavedTensorSpec& tensor : model.layers[1].memory->saved) {
    saved += SizeOf(tensor.sample);
    names.push_back(tensor.name);
  }
  constexpr int64_t kHidden = 32 * 64;
  constexpr int64_t kScores = 4 * 32 * 32;
  EXPECT_EQ(saved, Bytes(4 * (18 * kHidden + 3 * kScores + 4 * 32)));
  EXPECT_THAT(names,
              testing::IsSupersetOf({"attention.softmax.output", "attention.dropout.mask",
                                     "attention.dropout.output", "perceptron.down.dropout.mask"}));
}

TEST(EstimateRuntime, NeverHoldsLessWithMoreSamplesOrMicrobatches) {
  const ModelSpec model = BuildModelSpec({.layers = 6, .hidden = 16, .heads = 2}).value();
  const StagePartition partition = {{{0, 2}, {2, 4}, {4, 6}, {6, 8}}};
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    Bytes fewer;
    for (const int microbatches : {8, 16, 32}) {
      const auto schedule = BuildSchedule(
          entry.name,
          {.workers = 4 / entry.chunks, .chunks = entry.chunks, .microbatches = microbatches});
      if (!schedule.ok()) continue;
      MemoryInputs inputs{.model = &model, .partition = &partition, .schedule = &*schedule};
      const auto one = EstimateRuntime(inputs);
      inputs.microbatch = 3;
      const auto three = EstimateRuntime(inputs);
      ASSERT_TRUE(one.ok() && three.ok()) << entry.name << one.status() << three.status();
      EXPECT_THAT(UnknownLayers(*one), IsEmpty());
      EXPECT_GT(LargestWorker(*three), LargestWorker(*one)) << entry.name;
      EXPECT_GE(LargestWorker(*one), fewer) << entry.name;
      fewer = LargestWorker(*one);
    }
  }
}

}  // namespace
}  // namespace siphon
