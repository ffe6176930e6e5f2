#include "planner/memory/estimate_published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/schedules/build_schedule.h"
#include "planner/memory/layer_uses.h"
#include "tests/planner/memory/pipedream_program.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two blocks of width 4 with two heads on sequences of 3 and 5 ids.
ModelOptions SmallGpt() {
  return {
      .kind = "gpt", .layers = 2, .hidden = 4, .heads = 2, .vocabulary = 5, .sequence_length = 3};
}

StagePartition InTwo() { return {{{0, 2}, {2, 4}}}; }

TEST(EstimatePublished, CountsASmallGptAsByHand) {
  const ModelSpec model = BuildModelSpec(SmallGpt()).value();
  const StagePartition partition = InTwo();
  const Schedule schedule = BuildSchedule("1f1b", {.workers = 2, .microbatches = 4}).value();
  const MemoryEstimate estimate = EstimatePublished({.model = &model,
                                                     .partition = &partition,
                                                     .schedule = &schedule,
                                                     .microbatch = 2,
                                                     .precision = Precision::kFloat16})
                                      .value();
  // Embeddings 5 x 4 + 3 x 4 = 32. Block: norms 2 x 8, qkv 48 + 12, projection 16 + 4, up 64 + 16,
  // down 64 + 4: 244. Head: norm 8; its weight is the embedding's.
  constexpr int64_t kFirst = 32 + 244;
  constexpr int64_t kSecond = 244 + 8;
  // s b h (34 + 5 a s / h) = 3 x 2 x 4 x (34 + 5 x 2 x 3 / 4) = 24 x 41.5.
  constexpr int64_t kBlockActivations = 996;
  ASSERT_EQ(estimate.stages.size(), 2u);
  const MemoryByKind& first = estimate.stages[0].memory;
  EXPECT_EQ(first[MemoryKind::kParameters], Bytes(2 * kFirst));
  EXPECT_EQ(first[MemoryKind::kGradients], Bytes(2 * kFirst));
  EXPECT_EQ(first[MemoryKind::kOptimizer], Bytes(12 * kFirst));
  EXPECT_EQ(first[MemoryKind::kActivations], Bytes(2 * kBlockActivations));  // two in flight
  EXPECT_EQ(Total(first), Bytes(16 * kFirst + 2 * kBlockActivations));
  EXPECT_EQ(Total(estimate.workers[1]), Bytes(16 * kSecond + kBlockActivations));
  EXPECT_EQ(TotalOf(estimate), Bytes(16 * (kFirst + kSecond) + 3 * kBlockActivations));
  EXPECT_EQ(estimate.stages[0].live_microbatches, 2);
  EXPECT_EQ(estimate.stages[0].layers[1].source, MemorySource::kPublishedFormula);
}

TEST(EstimatePublished, NamesEveryTermOfTheFormula) {
  const ModelSpec model = BuildModelSpec(SmallGpt()).value();
  const StagePartition partition = {{{0, 4}}};
  const Schedule schedule = BuildSchedule("1f1b", {.workers = 1, .microbatches = 1}).value();
  const MemoryEstimate estimate =
      EstimatePublished(
          {.model = &model, .partition = &partition, .schedule = &schedule, .microbatch = 1})
          .value();
  const LayerUse& block = estimate.stages[0].layers[1];
  ASSERT_EQ(block.name, "transformer.h.0");
  Bytes sum;
  for (const SavedTensor& tensor : block.saved) sum += tensor.bytes;
  EXPECT_EQ(sum, Bytes(996));  // half the samples of the test above, twice the bytes
  EXPECT_EQ(block.saved[4], (SavedTensor{"attention.softmax", Bytes(2 * 2 * 2 * 9)}));
  EXPECT_TRUE(estimate.stages[0].layers[0].saved.empty());
}

TEST(EstimatePublished, KeepsAsManyWeightVersionsAsMinibatchesInFlight) {
  const ModelSpec model = BuildModelSpec(SmallGpt()).value();
  const StagePartition partition = {{{0, 1}, {1, 2}, {2, 3}, {3, 4}}};
  const Schedule schedule = PipedreamProgram(4, 9);
  const MemoryEstimate estimate =
      EstimatePublished({.model = &model, .partition = &partition, .schedule = &schedule}).value();
  std::vector<int> versions;
  for (const StageMemory& stage : estimate.stages) versions.push_back(stage.weight_versions);
  EXPECT_THAT(versions, ElementsAre(4, 3, 2, 1));
  const MemoryByKind& second = estimate.stages[1].memory;  // a block of 244 parameters
  EXPECT_EQ(second[MemoryKind::kParameters], Bytes(4 * 244));
  EXPECT_EQ(second[MemoryKind::kWeightVersions], Bytes(2 * 4 * 244));
  EXPECT_EQ(second[MemoryKind::kOptimizer], Bytes(8 * 244));
}

TEST(EstimatePublished, SaysWhichLayersAreUnknown) {
  ModelSpec model;
  model.layers = {{.name = "mine", .outputs = {{DType::kFloat32, {4}}}}, {.name = "loss"}};
  const StagePartition partition = {{{0, 1}, {1, 2}}};
  model.options.kind = "plugin";
  const Schedule schedule = BuildSchedule("gpipe", {.workers = 2, .microbatches = 3}).value();
  const MemoryEstimate estimate =
      EstimatePublished({.model = &model, .partition = &partition, .schedule = &schedule}).value();
  EXPECT_THAT(UnknownLayers(estimate), ElementsAre("mine", "loss"));
}

TEST(EstimatePublished, RefusesWhatCannotBeCounted) {
  const ModelSpec model = BuildModelSpec(SmallGpt()).value();
  const StagePartition partition = InTwo();
  const Schedule schedule = BuildSchedule("1f1b", {.workers = 2, .microbatches = 4}).value();
  const auto estimate = EstimatePublished({.model = &model,
                                           .partition = &partition,
                                           .schedule = &schedule,
                                           .microbatch = int64_t{1} << 55});
  EXPECT_EQ(estimate.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(estimate.status().message(), HasSubstr("beyond what can be counted (1e18)"));
}

TEST(EstimatePublished, RefusesAPartitionOfAnotherJob) {
  const ModelSpec model = BuildModelSpec(SmallGpt()).value();
  const StagePartition partition = InTwo();
  const Schedule schedule = BuildSchedule("1f1b", {.workers = 3, .microbatches = 4}).value();
  const auto estimate =
      EstimatePublished({.model = &model, .partition = &partition, .schedule = &schedule});
  EXPECT_THAT(estimate.status().message(),
              HasSubstr("a partition into 2 stages and a schedule of 3"));
}

TEST(LiveAtFullestMoment, LooksForTheMomentWithMostBytes) {
  // A worker with two stages: all of stage 0 forward, then microbatch by microbatch.
  const Schedule schedule = ParseSchedule("0F0 0F1 1F0 0B0 1F1 1B0 0B1 1B1\n").value();
  EXPECT_THAT(LiveAtFullestMoment(schedule, {Bytes(10), Bytes(1)}), ElementsAre(2, 1));
  EXPECT_THAT(LiveAtFullestMoment(schedule, {Bytes(1), Bytes(10)}), ElementsAre(1, 2));
}

}  // namespace
}  // namespace siphon
