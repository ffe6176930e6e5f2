#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_PUBLISHED_WEIGHT_OFFLOAD_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_PUBLISHED_WEIGHT_OFFLOAD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/performance/published_figures.h"
#include "planner/units.h"
#include "planner/weight_offload/offload_program_bound.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// Table 1 of the weight offloading paper (hal-03580767), durations in ms at 12 GB/s each way.
struct WeightOffloadRow {
  absl::string_view network;
  int depth = 0;
  int batch = 0;
  int compute_ms = 0;  // the sum of all operations, and the paper's lower bound ("ILP") too
  int greedy_ms = 0;
  int layer_to_layer_ms = 0;
  int greedy_star_ms = 0;  // without the discount
};
const std::vector<WeightOffloadRow>& WeightOffloadTable1();
// Errors: NotFound, the known rows listed.
absl::StatusOr<WeightOffloadRow> FindWeightOffloadRow(absl::string_view network, int depth,
                                                      int batch);

// The row as a problem, at `gigabytes_per_second` each way. The paper prints neither sizes, times
// nor M_GPU of a layer. One rule for all rows:
//   published   hidden 3072 and fp32 weights of GPT-2; 20 MB of activations kept a layer at batch
//               16, and more in proportion; a V100 with 16 GB; M_GPU smaller by what a layer
//               computes anew in its backward, "1 GB to 2 GB" at batch 16
//   fitted to L2L's idle time, which depends on sizes alone: 1 GB/s is 1000 MiB/s; the depth counts
//               depth - 2 equal blocks and two ends, of which one holds the embeddings and the
//               other no weight; Bert's blocks of 160 MiB and embeddings of 637 MiB
//   ASSUMED     blocks share the compute time equally, the ends take none (1 ns, as an operation
//               takes time here); a backward takes three times as long as a forward, because it
//               computes the forward anew; 2 GB computed anew for GPT-2, whose blocks are larger,
//               and 1 GB for Bert; the input takes no memory
WeightOffloadProblem PublishedWeightOffload(const WeightOffloadRow& row,
                                            double gigabytes_per_second);
// The same in sentences, for reports.
std::vector<std::string> WeightOffloadAssumptions();

// Step times of one problem.
struct WeightOffloadTimes {
  Nanos compute;
  Nanos bound;  // the greater of counting's and the program's
  // Of the paper's integer program; nothing without a solver, or where its relaxation would take
  // minutes: from 100 layers on, if the trimmed greedy idles.
  std::optional<OffloadProgramBound> program;
  Nanos trimmed;  // ours
  Nanos greedy;
  Nanos greedy_star;
  Nanos layer_to_layer;
  friend bool operator==(const WeightOffloadTimes&, const WeightOffloadTimes&) = default;
};
// All as the plans' simulations give them; the program relaxed, unless a plan proves its minimum.
// Errors: as for CheckWeightOffloadProblem.
absl::StatusOr<WeightOffloadTimes> CompareWeightOffload(const WeightOffloadProblem& problem);

// Figure 4: step time against the rate of the link, 0.5 to 12 GB/s, for a row of Table 1.
absl::StatusOr<Figure> WeightOffloadFigure4(const WeightOffloadRow& row);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_PUBLISHED_WEIGHT_OFFLOAD_H_
