// The memory model against reality: what each worker's books count in a training step, with
// nothing measured before.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "pipeline/torch/counting_allocator.h"
#include "planner/memory/estimate_runtime.h"
#include "swap/memory_ledger.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/tiny_models.h"
#include "tests/support/token_batches.h"

namespace siphon {
namespace {

// Of it, at most four points are for tensors that wait to be sent: how many there are at the peak
// depends on how fast the neighbour is.
constexpr double kTolerance = 0.10;

struct ShapeCase {
  std::string name;
  ModelOptions model;
  int stages = 2;
  int microbatches = 4;
  int microbatch = 2;
  std::string optimizer = "adamw";
  int moments = 2;
};

ModelOptions Sized(ModelOptions model, int64_t hidden, int64_t heads, int64_t vocabulary,
                   int64_t sequence) {
  model.hidden = hidden;
  model.heads = heads;
  model.vocabulary = vocabulary;
  model.sequence_length = sequence;
  return model;
}

ModelOptions WrittenOut(ModelOptions model) {
  model.flash_attention = false;
  return model;
}

ModelOptions Activated(ModelOptions model, const std::string& activation) {
  model.activation = activation;
  return model;
}

// Weights weigh most in some, activations in others, logits or attention scores in yet others.
std::vector<ShapeCase> Shapes() {
  return {
      {"GptActivations", Sized(TinyGpt(4), 32, 4, 64, 64), 2, 6, 4},
      {"GptWeights", Sized(TinyGpt(4), 96, 4, 300, 16), 3, 4, 1},
      {"GptDropout", WithDropout(Sized(TinyGpt(2), 32, 4, 64, 48), 0.1), 2, 4, 3},
      {"GptWrittenOut", WrittenOut(Sized(TinyGpt(4), 32, 2, 64, 48)), 4, 8, 2},
      {"GptLogits", Untied(Sized(TinyGpt(2), 32, 4, 2000, 32)), 2, 3, 2},
      {"BertActivations", Sized(TinyBert(4), 32, 4, 64, 64), 2, 6, 4, "sgd", 0},
      {"BertDropout", WithDropout(Sized(TinyBert(3), 48, 3, 100, 32), 0.1), 3, 5, 2},
      {"BertWeights", Sized(TinyBert(2), 96, 4, 500, 16), 2, 4, 1},
      {"MlpRelu", Sized(TinyMlp(12), 64, 1, 128, 32), 3, 6, 4},
      {"MlpGeluDropout", Activated(WithDropout(Sized(TinyMlp(8), 64, 1, 128, 32), 0.2), "gelu"), 2,
       5, 3},
  };
}

using Books = std::vector<std::shared_ptr<MemoryLedger>>;

// The books of each worker after two steps; their peaks are of the second.
Books Measure(const ShapeCase& shape, const ModelSpec& model, const TrainingPlan& plan,
              double clip_norm) {
  const TokenBatches batches = MakeTokenBatches(
      model, {.steps = 2, .microbatches = shape.microbatches, .microbatch = shape.microbatch}, 7);
  PipelineSettings settings{.clip_norm = clip_norm, .learning_rates = {0.01, 0.01}};
  settings.optimizer.name = shape.optimizer;
  for (int worker = 0; worker < WorkerCount(plan.training); ++worker) {
    settings.ledgers.push_back(std::make_shared<MemoryLedger>(Bytes()));
  }
  const auto result = RunPipeline(shape.model, plan, batches.steps, settings);
  EXPECT_TRUE(result.ok()) << result.status();
  return settings.ledgers;
}

struct Case {
  ShapeCase shape;
  std::string schedule;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.shape.name << " " << one.schedule; }

class MemoryPrediction : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }

  // Skips the test where the schedule does not take the shape.
  void Compare();
};

void MemoryPrediction::Compare() {
  const auto& [shape, schedule] = GetParam();
  const ModelSpec model = BuildModelSpec(shape.model).value();
  const ScheduleEntry entry = FindSchedule(schedule).value();
  const auto compute = BuildSchedule(schedule, {.workers = shape.stages / entry.chunks,
                                                .chunks = entry.chunks,
                                                .microbatches = shape.microbatches});
  if (!compute.ok()) GTEST_SKIP() << compute.status();
  const StagePartition partition = PartitionModel(model, shape.stages, "balanced").value();
  const auto plan = PlanAround(model, partition, *compute);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto predicted = EstimateRuntime({.model = &model,
                                          .partition = &partition,
                                          .schedule = &plan->training,
                                          .microbatch = shape.microbatch,
                                          .moments = shape.moments});
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const Books books =
      Measure(shape, model, *plan, entry.update == WeightUpdate::kJustInTime ? 0.0 : 1.0);
  ASSERT_EQ(books.size(), predicted->workers.size());
  for (size_t worker = 0; worker < books.size(); ++worker) {
    const auto real = static_cast<double>(books[worker]->peak().value);
    const auto ours = static_cast<double>(Total(predicted->workers[worker]).value);
    if (std::getenv("SIPHON_TEST_PRINT") != nullptr) {
      std::printf("%-18s %-24s worker %zu: measured %9.0f predicted %9.0f  %+.2f %%\n",
                  shape.name.c_str(), schedule.c_str(), worker, real, ours,
                  100 * (ours / real - 1));
    }
    EXPECT_NEAR(ours, real, kTolerance * real) << "worker " << worker;
    // What stays from step to step is known to the byte.
    const MemoryByKind now = books[worker]->PeakByKind();
    for (const MemoryKind kind : {MemoryKind::kParameters, MemoryKind::kOptimizer}) {
      EXPECT_EQ(now[kind], predicted->workers[worker][kind]) << MemoryKindName(kind);
    }
  }
}

TEST_P(MemoryPrediction, IsWithinTenPercentOnEveryWorker) { Compare(); }

std::string NameOf(const testing::TestParamInfo<Case>& test) {
  return test.param.shape.name + "_" + test.param.schedule;
}

std::vector<Case> ShapesUnderTwoSchedules() {
  std::vector<Case> cases;
  for (const ShapeCase& shape : Shapes()) {
    for (const char* schedule : {"gpipe", "1f1b"}) cases.push_back({shape, schedule});
  }
  return cases;
}

// Two shapes under whatever else is registered and runs live.
std::vector<Case> OtherSchedules() {
  const std::vector<ShapeCase> shapes = {
      {"Gpt", Sized(TinyGpt(6), 32, 4, 64, 64), 4, 8, 3},
      {"MlpDropout", WithDropout(Sized(TinyMlp(14), 64, 1, 128, 32), 0.1), 4, 8, 3}};
  std::vector<Case> cases;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    const bool done = entry.name == "gpipe" || entry.name == "1f1b";
    const bool live = entry.update != WeightUpdate::kAsynchronous && entry.name != "csv" &&
                      entry.name != "harmony_dp";
    if (done || !live) continue;
    for (const ShapeCase& shape : shapes) cases.push_back({shape, entry.name});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, MemoryPrediction, testing::ValuesIn(ShapesUnderTwoSchedules()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Schedules, MemoryPrediction, testing::ValuesIn(OtherSchedules()), NameOf);

}  // namespace
}  // namespace siphon
