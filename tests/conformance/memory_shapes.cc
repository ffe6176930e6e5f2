#include "tests/conformance/memory_shapes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/plan_rings.h"
#include "partitioner/partition_model.h"
#include "planner/memory/held_bytes.h"
#include "planner/status.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/tiny_models.h"
#include "tests/support/token_batches.h"

namespace siphon {
namespace {

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

// Of the shapes, every third in turn.
constexpr size_t kShapesApart = 3;

// One for schedules that know no other, and for those that would run on replicas.
int WorkersFor(const MemoryShape& shape, const ScheduleEntry& entry) {
  const ScheduleShape wanted{
      .workers = shape.workers, .chunks = entry.chunks, .microbatches = shape.microbatches};
  return BuildLive(entry, wanted).has_value() ? shape.workers : 1;
}

std::optional<Schedule> ScheduleOf(const MemoryShape& shape, const ScheduleEntry& entry) {
  return BuildLive(entry, {.workers = WorkersFor(shape, entry),
                           .chunks = entry.chunks,
                           .microbatches = shape.microbatches});
}

}  // namespace

std::vector<MemoryShape> MemoryShapes() {
  return {
      {"GptActivations", Sized(TinyGpt(4), 32, 4, 64, 64), 2, 6, 4},
      {"GptWeights", Sized(TinyGpt(4), 96, 4, 300, 16), 3, 6, 1},
      {"GptDropout", WithDropout(Sized(TinyGpt(2), 32, 4, 64, 48), 0.1), 2, 4, 3},
      {"GptWrittenOut", WrittenOut(Sized(TinyGpt(6), 32, 2, 64, 48)), 4, 8, 2},
      {"GptLogits", Untied(Sized(TinyGpt(2), 32, 4, 2000, 32)), 2, 4, 2},
      {"BertActivations", Sized(TinyBert(4), 32, 4, 64, 64), 2, 6, 4, "sgd", 0},
      {"BertDropout", WithDropout(Sized(TinyBert(4), 48, 3, 100, 32), 0.1), 3, 6, 2},
      {"BertWeights", Sized(TinyBert(2), 96, 4, 500, 16), 2, 4, 1},
      {"MlpRelu", Sized(TinyMlp(12), 64, 1, 128, 32), 3, 6, 4},
      {"MlpGeluDropout", Activated(WithDropout(Sized(TinyMlp(14), 64, 1, 128, 32), 0.2), "gelu"), 4,
       8, 3},
      {"GptActivationsBf16", Sized(TinyGpt(4), 32, 4, 64, 64), 2, 6, 4, "adamw", 2, "bf16"},
      {"GptLogitsBf16", Untied(Sized(TinyGpt(2), 32, 4, 2000, 32)), 2, 4, 2, "adamw", 2, "bf16"},
      {"BertDropoutBf16", WithDropout(Sized(TinyBert(4), 48, 3, 100, 32), 0.1), 3, 6, 2, "sgd", 0,
       "bf16"},
      {"GptWrittenOutFp16", WrittenOut(Sized(TinyGpt(6), 32, 2, 64, 48)), 4, 8, 2, "adamw", 2,
       "fp16"},
  };
}

std::vector<MemoryShape> SmallMemoryShapes() {
  std::vector<MemoryShape> shapes;
  for (const int workers : {1, 2}) {
    for (const bool three : {false, true}) {  // samples of 4 tokens, or one of 8
      const auto append = [&](const std::string& name, const ModelOptions& model) {
        shapes.push_back({absl::StrCat(name, three ? "ThreeSamplesOn" : "OneSampleOn", workers),
                          Sized(model, 16, 2, 64, three ? 4 : 8), workers, three ? 16 : 64,
                          three ? 3 : 1});
      };
      append("Gpt", TinyGpt(4));
      append("Bert", TinyBert(4));
      append("Mlp", TinyMlp(4));
    }
  }
  return shapes;
}

Precision PrecisionOf(const MemoryShape& shape) { return ParsePrecision(shape.precision).value(); }

ModelSpec ModelOf(const MemoryShape& shape) {
  return InPrecision(BuildModelSpec(shape.model).value(), PrecisionOf(shape));
}

JobConfig JobOf(const MemoryShape& shape) {
  JobConfig job;
  job.model.kind = shape.model.kind;
  job.model.layers = shape.model.layers;
  job.model.hidden = shape.model.hidden;
  job.model.heads = shape.model.heads;
  job.model.vocabulary = shape.model.vocabulary;
  job.model.dropout = shape.model.dropout;
  job.model.tie_embeddings = shape.model.tie_embeddings;
  job.model.flash_attention = shape.model.flash_attention;
  job.model.activation = shape.model.activation;
  job.data.kind = "synthetic";
  job.data.sequence_length = shape.model.sequence_length;
  job.data.samples = 64;
  job.train.global_batch = shape.microbatch;
  job.train.microbatch = shape.microbatch;
  job.train.optimizer = shape.optimizer;
  job.train.precision = shape.precision;
  return job;
}

std::vector<MemoryCase> MemoryCases(const std::string& schedule) {
  const std::vector<std::string> names = LiveScheduleNames();
  const size_t place = std::find(names.begin(), names.end(), schedule) - names.begin();
  const bool full = TakesAllCases();
  const std::vector<MemoryShape> shapes = MemoryShapes();
  std::vector<MemoryCase> cases;
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    const size_t turn = (shape + place) % shapes.size();
    if (full || turn % kShapesApart == 0) cases.push_back({shapes[shape], schedule});
  }
  return cases;
}

absl::StatusOr<TrainingPlan> PlanOf(const MemoryCase& one, const ModelSpec& model) {
  SIPHON_ASSIGN_OR_RETURN(const ScheduleEntry entry, FindSchedule(one.schedule));
  const std::optional<Schedule> schedule = ScheduleOf(one.shape, entry);
  if (!schedule.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(one.schedule, " does not take the shape ", one.shape.name));
  }
  SIPHON_ASSIGN_OR_RETURN(const StagePartition partition,
                          PartitionModel(model, StageCount(*schedule), "balanced"));
  SIPHON_ASSIGN_OR_RETURN(TrainingPlan plan, PlanAround(model, partition, *schedule));
  plan.microbatch = one.shape.microbatch;
  return plan;
}

absl::StatusOr<std::vector<MeasuredPeak>> MeasurePeaks(const MemoryCase& one,
                                                       const ModelSpec& model,
                                                       const TrainingPlan& plan,
                                                       MessagePath messages) {
  const MemoryShape& shape = one.shape;
  const TokenBatches batches = MakeTokenBatches(
      model, {.steps = 2, .microbatches = shape.microbatches, .microbatch = shape.microbatch}, 7);
  SIPHON_ASSIGN_OR_RETURN(const ScheduleEntry entry, FindSchedule(one.schedule));
  PipelineSettings settings{.clip_norm = entry.update == WeightUpdate::kJustInTime ? 0.0 : 1.0,
                            .precision = PrecisionOf(shape),
                            .learning_rates = {0.01, 0.01}};
  if (messages == MessagePath::kRings) settings.rings = PlanRings(plan, model);
  settings.optimizer.name = shape.optimizer;
  // Room for a whole step: how far a loaded machine lets a neighbour fall behind is not the
  // model's.
  for (RingSpec& ring : settings.rings) ring.capacity = ring.capacity * shape.microbatches;
  for (int worker = 0; worker < WorkerCount(plan.training); ++worker) {
    settings.ledgers.push_back(std::make_shared<MemoryLedger>(Bytes()));
  }
  SIPHON_RETURN_IF_ERROR(RunPipeline(shape.model, plan, batches.steps, settings).status());
  std::vector<MeasuredPeak> peaks;
  for (const auto& ledger : settings.ledgers) {
    peaks.push_back({ledger->peak(), ledger->PeakByKind()});
  }
  return peaks;
}

double ErrorInPercent(const MemoryCase& one, size_t worker, Bytes predicted, Bytes measured) {
  const double error =
      100 * (static_cast<double>(predicted.value) / static_cast<double>(measured.value) - 1);
  if (std::getenv("SIPHON_TEST_PRINT") != nullptr) {
    std::printf("%-18s %-24s worker %zu: measured %9ld predicted %9ld  %+.2f %%\n",
                one.shape.name.c_str(), one.schedule.c_str(), worker,
                static_cast<long>(measured.value), static_cast<long>(predicted.value), error);
  }
  return error;
}

}  // namespace siphon
