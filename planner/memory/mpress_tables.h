#ifndef SIPHON_PLANNER_MEMORY_MPRESS_TABLES_H_
#define SIPHON_PLANNER_MEMORY_MPRESS_TABLES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"

namespace siphon {

// Memory demands that MPress (Zhou et al., HPCA 2023) measured on eight stages, Table II, in units
// of 1e9 bytes.
struct MpressRow {
  std::string name;      // "GPT-5.3B"
  std::string schedule;  // our name of what it ran on: "1f1b" is DAPPLE's
  int64_t microbatch = 1;
  Precision precision = Precision::kFloat32;
  int layers = 0;  // blocks; 0 where the paper does not say
  double billion_parameters = 0;
  double total = 0;
  double largest = 0;   // of a stage
  double smallest = 0;  // of a stage
};
const std::vector<MpressRow>& MpressTable2();
inline constexpr int kMpressStages = 8;

// Shares of a whole job's memory, Table I, in percent.
struct MpressShares {
  std::string name;
  double activations = 0;
  double optimizer = 0;
  double parameters_and_gradients = 0;
};
const std::vector<MpressShares>& MpressTable1();

// The paper prints no shapes. These are fitted, not published: GPT with hidden 4096, 32 heads,
// sequence 1024, vocabulary 50257 and a head of its own on the last stage; Bert with hidden 1024,
// 16 heads, sequence 512, vocabulary 30522, its head tied.
ModelOptions FittedShape(const MpressRow& row);

// Blocks cut into stages at floor(i L / stages); the embedding goes with the first, the head with
// the last. Requires: at least as many blocks as stages.
StagePartition CutAtFloor(const ModelSpec& model, int stages);

// Published accounting of a row with the given shape. `schedule` is that of row.schedule for
// kMpressStages workers and so many microbatches that the pipeline fills.
absl::StatusOr<MemoryEstimate> EstimateRow(const MpressRow& row, const ModelOptions& shape,
                                           const Schedule& schedule);

// Largest relative deviation of total, largest and smallest from the row's; 0.1 is 10 %.
double WorstDeviation(const MpressRow& row, const MemoryEstimate& estimate);
MpressShares SharesOf(const std::string& name, const MemoryEstimate& estimate);

// For rows without a depth: among widths that are multiples of 128 from 1024 to 4096 (64 a head),
// sequence 512, and the depth that comes closest to the parameter count with one block more or
// less, the shape with the least worst deviation.
absl::StatusOr<ModelOptions> ClosestShape(const MpressRow& row, const Schedule& schedule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_MPRESS_TABLES_H_
