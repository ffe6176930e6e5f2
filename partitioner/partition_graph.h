#ifndef SIPHON_PARTITIONER_PARTITION_GRAPH_H_
#define SIPHON_PARTITIONER_PARTITION_GRAPH_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "partitioner/profile_graph.h"
#include "partitioner/stage_search.h"
#include "planner/units.h"

namespace siphon {

enum class Replication { kAllowed, kNone };

inline constexpr int kMostPartitionWorkers = 1024;

struct GraphPartitionRequest {
  int workers = 1;
  BytesPerSecond bandwidth{1'000'000'000};  // between any two workers, as PipeDream's default
  Replication replication = Replication::kAllowed;
  std::optional<double> compression_ratio;  // nothing: transfers between stages are free
  WeightVersions weight_versions = WeightVersions::kInFlight;
};

enum class StageLimit { kCompute, kTransfer };

struct GraphStage {
  std::vector<int> nodes;  // indices, producers first
  int replicas = 1;
  Nanos compute;       // of one minibatch on one worker, forward and backward
  Bytes parameters;    // of one replica
  Bytes boundary;      // outputs that this stage and earlier ones hand to later ones
  double memory = 0;   // bytes on each replica at the peak
  double seconds = 0;  // between two minibatches
  StageLimit limit = StageLimit::kCompute;
};

struct GraphPartition {
  double seconds_per_minibatch = 0;  // in steady state: the slowest stage's
  std::vector<GraphStage> stages;    // every node in exactly one
  int workers = 0;                   // used, at most those asked for
  size_t cuts = 0;                   // that were compared
  std::string left_out;              // for people; empty: no cut was left out
  double one_worker_seconds = 0;     // without any pipeline
  double data_parallel_seconds = 0;  // one stage, all workers asked for
};

struct GraphMethodInfo {
  std::string name;
  std::string help;
};
// graph_methods.def, then those of partition_methods.def that are not in it.
std::vector<GraphMethodInfo> KnownGraphMethods();

// Cuts a measured model into pipeline stages with replicas by the named method, PipeDream's costs
// (StageCostModel) deciding. `pipedream` charges what its optimizer charges (the frontier); all
// others charge the bytes that cross. `exact` may leave workers idle where more would not help, and
// `memory_balanced` where there are fewer nodes; all others spend every worker.
// Errors: NotFound for an unknown method (known ones listed); InvalidArgument for a graph that
// CheckGraph refuses, workers outside [1, 1024], a bandwidth or ratio that is not positive, and
// fewer cuts than the method needs.
absl::StatusOr<GraphPartition> PartitionGraph(const ProfileGraph& graph,
                                              const GraphPartitionRequest& request,
                                              absl::string_view method);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_PARTITION_GRAPH_H_
