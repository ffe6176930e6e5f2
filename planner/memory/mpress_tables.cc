#include "planner/memory/mpress_tables.h"

#include <algorithm>
#include <cmath>

#include "planner/memory/estimate_published.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr double kGigabyte = 1e9;

ModelOptions BertShape(int64_t layers, int64_t hidden) {
  return {.kind = "bert",
          .layers = layers,
          .hidden = hidden,
          .heads = hidden / 64,
          .vocabulary = 30522,
          .sequence_length = 512,
          .dropout = 0.1};
}

double InGigabytes(Bytes bytes) { return static_cast<double>(bytes.value) / kGigabyte; }

double Deviation(double ours, double theirs) { return std::abs(ours / theirs - 1); }

}  // namespace

const std::vector<MpressRow>& MpressTable2() {
  constexpr Precision kFp32 = Precision::kFloat32;
  constexpr Precision kMixed = Precision::kFloat16;
  static const auto* const rows =
      new std::vector<MpressRow>{{"Bert-0.35B", "pipedream", 12, kFp32, 24, 0.35, 108.8, 24.7, 3.7},
                                 {"Bert-0.64B", "pipedream", 12, kFp32, 48, 0.64, 227.0, 50.6, 6.4},
                                 {"Bert-1.67B", "pipedream", 12, kFp32, 0, 1.67, 345.9, 78.0, 8.8},
                                 {"Bert-4.0B", "pipedream", 12, kFp32, 0, 4.0, 578.7, 128.3, 16.3},
                                 {"Bert-6.2B", "pipedream", 12, kFp32, 0, 6.2, 1279.1, 280.6, 35.5},
                                 {"GPT-5.3B", "1f1b", 2, kMixed, 25, 5.3, 164.8, 28.5, 12.7},
                                 {"GPT-10.3B", "1f1b", 2, kMixed, 50, 10.3, 325.0, 56.4, 24.9},
                                 {"GPT-15.4B", "1f1b", 2, kMixed, 75, 15.4, 486.7, 84.5, 37.2},
                                 {"GPT-20.4B", "1f1b", 2, kMixed, 100, 20.4, 646.9, 112.4, 49.4},
                                 {"GPT-25.5B", "1f1b", 2, kMixed, 125, 25.5, 806.2, 140.1, 61.5}};
  return *rows;
}

const std::vector<MpressShares>& MpressTable1() {
  static const auto* const rows =
      new std::vector<MpressShares>{{"Bert-0.64B", 39, 46, 15}, {"GPT-5.3B", 42, 44, 14}};
  return *rows;
}

ModelOptions FittedShape(const MpressRow& row) {
  if (row.schedule == "pipedream") return BertShape(row.layers, 1024);
  return {.kind = "gpt",
          .layers = row.layers,
          .hidden = 4096,
          .heads = 32,
          .vocabulary = 50257,
          .sequence_length = 1024,
          .dropout = 0.1,
          .tie_embeddings = false};
}

StagePartition CutAtFloor(const ModelSpec& model, int stages) {
  const int blocks = static_cast<int>(model.layers.size()) - 2;
  SIPHON_CHECK(blocks >= stages, "every stage gets a block");
  StagePartition partition;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const int begin = static_cast<int>(stage * blocks / stages);
    const int end = static_cast<int>((stage + 1) * blocks / stages);
    partition.stages.push_back(
        {stage == 0 ? 0 : begin + 1, stage + 1 == stages ? end + 2 : end + 1});
  }
  return partition;
}

absl::StatusOr<MemoryEstimate> EstimateRow(const MpressRow& row, const ModelOptions& shape,
                                           const Schedule& schedule) {
  SIPHON_ASSIGN_OR_RETURN(const ModelSpec model, BuildModelSpec(shape));
  const StagePartition partition = CutAtFloor(model, kMpressStages);
  return EstimatePublished({.model = &model,
                            .partition = &partition,
                            .schedule = &schedule,
                            .microbatch = row.microbatch,
                            .precision = row.precision});
}

double WorstDeviation(const MpressRow& row, const MemoryEstimate& estimate) {
  return std::max({Deviation(InGigabytes(TotalOf(estimate)), row.total),
                   Deviation(InGigabytes(LargestWorker(estimate)), row.largest),
                   Deviation(InGigabytes(SmallestWorker(estimate)), row.smallest)});
}

MpressShares SharesOf(const std::string& name, const MemoryEstimate& estimate) {
  MemoryByKind sum;
  for (const MemoryByKind& worker : estimate.workers) sum = sum + worker;
  const auto share = [&sum](std::initializer_list<MemoryKind> kinds) {
    double bytes = 0;
    for (const MemoryKind kind : kinds) bytes += static_cast<double>(sum[kind].value);
    return 100 * bytes / static_cast<double>(Total(sum).value);
  };
  return {.name = name,
          .activations = share({MemoryKind::kActivations}),
          .optimizer = share({MemoryKind::kOptimizer}),
          .parameters_and_gradients = share(
              {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kWeightVersions})};
}

absl::StatusOr<ModelOptions> ClosestShape(const MpressRow& row, const Schedule& schedule) {
  ModelOptions closest;
  double least = INFINITY;
  for (int64_t hidden = 1024; hidden <= 4096; hidden += 128) {
    const double block = 12.0 * static_cast<double>(hidden * hidden);
    const auto depth = static_cast<int64_t>(std::lround(row.billion_parameters * 1e9 / block));
    for (int64_t layers = std::max<int64_t>(depth - 1, kMpressStages); layers <= depth + 1;
         ++layers) {
      const ModelOptions shape = BertShape(layers, hidden);
      SIPHON_ASSIGN_OR_RETURN(const MemoryEstimate estimate, EstimateRow(row, shape, schedule));
      const double worst = WorstDeviation(row, estimate);
      if (worst < least) {
        least = worst;
        closest = shape;
      }
    }
  }
  if (least == INFINITY) {
    return absl::NotFoundError("no shape has eight blocks and the row's parameter count");
  }
  return closest;
}

}  // namespace siphon
