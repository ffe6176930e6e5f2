#ifndef SIPHON_PARTITIONER_STAGE_SEARCH_H_
#define SIPHON_PARTITIONER_STAGE_SEARCH_H_

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "partitioner/cut_states.h"
#include "planner/units.h"

namespace siphon {

enum class Charged { kCrossing, kFrontier };  // bytes of a cut, see CutState

// How many versions of its weights a stage keeps beside gradients and optimizer state.
enum class WeightVersions {
  kOne,       // 1F1B with a flush
  kInFlight,  // PipeDream: one for each minibatch in flight
};

// What stages cost. Narayanan et al., PipeDream, SOSP 2019, section 3.1, as its optimizer counts:
// gradients of replicas are summed after the compute and not beside it, and each transfer is
// charged to the replicas of the later of the two stages, and of the earlier one unless that is the
// first.
struct StageCostModel {
  BytesPerSecond bandwidth;
  // A transfer's bytes are divided by it; nothing: transfers between stages are free.
  std::optional<double> compression_ratio;
  Charged charged = Charged::kCrossing;
  WeightVersions weight_versions = WeightVersions::kInFlight;
};

// The nodes between two states, on `replicas` workers.
struct StageChoice {
  size_t begin = 0;  // index of a state; 0: the first stage
  size_t end = 0;    // likewise; begin is before end
  int replicas = 1;
  friend bool operator==(const StageChoice&, const StageChoice&) = default;
};

// Seconds between two minibatches that leave this stage:
//   compute     (T + 4 (m - 1) P / (B m)) / m    T: forward and backward, P: parameters
//   transfers   2 a / (ratio B m)                a: bytes of the cut on either side, but none for
//                                                the first stage and after the last
// and of these the largest.
double StageSeconds(const CutStates& cuts, const StageCostModel& model, const StageChoice& stage);

// Bytes on each replica with `workers_after` workers on later stages: weights, gradients, optimizer
// state, and what ceil((workers_after + m) / m) minibatches in flight stash (1F1B).
double StageBytes(const CutStates& cuts, const StageCostModel& model, const StageChoice& stage,
                  int workers_after);

// What is made small over all stages. kUnevenness: the sum of the squares of the stages' seconds.
enum class SearchObjective { kSeconds, kBytes, kUnevenness };

struct SearchRequest {
  int workers = 1;
  enum class Use { kAll, kAtMost } use = Use::kAtMost;
  int most_replicas = 1;
  SearchObjective objective = SearchObjective::kSeconds;
  double most_seconds = std::numeric_limits<double>::infinity();  // no stage above
  double most_bytes = std::numeric_limits<double>::infinity();    // likewise
};

struct SearchResult {
  double value = 0;  // of the objective
  std::vector<StageChoice> stages;
};

// The best of all sequences of stages, by dynamic programming from the last stage to the first over
// (state, workers on the stages after it). Of equal ones that with fewer workers; then the first
// found, so that the same input gives the same stages. Nothing when no sequence keeps the limits.
// Complexity: pairs of states * workers * most_replicas.
std::optional<SearchResult> SearchStages(const CutStates& cuts, const StageCostModel& model,
                                         const SearchRequest& request);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_STAGE_SEARCH_H_
