// The memory model against reality: what each worker's books count in a training step, with
// nothing measured before.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
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

// What the books of each worker count at their peak in the second step.
std::vector<Bytes> Measure(const ShapeCase& shape, const ModelSpec& model,
                           const TrainingPlan& plan) {
  const TokenBatches batches = MakeTokenBatches(
      model, {.steps = 2, .microbatches = shape.microbatches, .microbatch = shape.microbatch}, 7);
  PipelineSettings settings{.clip_norm = 1.0, .learning_rates = {0.01, 0.01}};
  settings.optimizer.name = shape.optimizer;
  for (int worker = 0; worker < WorkerCount(plan.training); ++worker) {
    settings.ledgers.push_back(std::make_shared<MemoryLedger>(Bytes()));
  }
  const auto result = RunPipeline(shape.model, plan, batches.steps, settings);
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<Bytes> peaks;
  for (const auto& ledger : settings.ledgers) peaks.push_back(ledger->peak());
  return peaks;
}

struct PredictionCase {
  ShapeCase shape;
  std::string schedule;
};

class MemoryPrediction : public testing::TestWithParam<PredictionCase> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

TEST_P(MemoryPrediction, IsWithinTenPercentOnEveryWorker) {
  const auto& [shape, schedule] = GetParam();
  const ModelSpec model = BuildModelSpec(shape.model).value();
  const ScheduleEntry entry = FindSchedule(schedule).value();
  const auto compute = BuildSchedule(schedule, {.workers = shape.stages / entry.chunks,
                                                .chunks = entry.chunks,
                                                .microbatches = shape.microbatches});
  ASSERT_TRUE(compute.ok()) << compute.status();
  const StagePartition partition = PartitionModel(model, shape.stages, "balanced").value();
  const auto plan = PlanAround(model, partition, *compute);
  ASSERT_TRUE(plan.ok()) << plan.status();

  const auto predicted = EstimateRuntime({.model = &model,
                                          .partition = &partition,
                                          .schedule = &plan->training,
                                          .microbatch = shape.microbatch,
                                          .moments = shape.moments});
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const std::vector<Bytes> measured = Measure(shape, model, *plan);
  ASSERT_EQ(measured.size(), predicted->workers.size());
  for (size_t worker = 0; worker < measured.size(); ++worker) {
    const auto real = static_cast<double>(measured[worker].value);
    const auto ours = static_cast<double>(Total(predicted->workers[worker]).value);
    if (std::getenv("SIPHON_TEST_PRINT") != nullptr) {
      std::printf("%-18s %-8s worker %zu: measured %9.0f predicted %9.0f  %+.2f %%\n",
                  shape.name.c_str(), schedule.c_str(), worker, real, ours,
                  100 * (ours / real - 1));
    }
    EXPECT_NEAR(ours, real, kTolerance * real) << "worker " << worker;
  }
}

std::vector<PredictionCase> Cases() {
  std::vector<PredictionCase> cases;
  for (const ShapeCase& shape : Shapes()) {
    for (const char* schedule : {"gpipe", "1f1b"}) cases.push_back({shape, schedule});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, MemoryPrediction, testing::ValuesIn(Cases()),
                         [](const auto& test) {
                           return test.param.shape.name + "_" + test.param.schedule;
                         });

}  // namespace
}  // namespace siphon
