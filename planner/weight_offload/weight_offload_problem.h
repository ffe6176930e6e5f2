#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_PROBLEM_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_PROBLEM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/units.h"

namespace siphon {

// Training on one device that cannot hold all weights, while activations stay: the model of
// Beaumont, Eyraud-Dubois, Shilova and Zhao, "Weight Offloading Strategies for Training Large DNN
// Models" (2022, hal-03580767), section 3, in bytes and integer nanoseconds.

struct WeightOffloadLayer {
  std::string name;
  Nanos forward;
  Nanos backward;    // the update of the weights included
  Bytes weight;      // |w_i|; its gradient is as large
  Bytes activation;  // |a_i|, the output: kept from F_i to B_{i+1}; its gradient is as large
  friend bool operator==(const WeightOffloadLayer&, const WeightOffloadLayer&) = default;
};

struct WeightOffloadProblem {
  std::vector<WeightOffloadLayer> layers;  // layer 0 runs forward first; "1" in text
  Bytes input;                             // |a_0|
  BytesPerSecond out;                      // device to host
  BytesPerSecond in;                       // both directions run at once
  Bytes capacity;                          // M_GPU
  friend bool operator==(const WeightOffloadProblem&, const WeightOffloadProblem&) = default;
};

// The step of the paper begins with the last backward: operations B_L, ..., B_1, F_1, ..., F_L, the
// forwards being those of the next batch. An operation is its place in that order, from 0.
enum class Pass { kForward, kBackward };
int OperationCount(const WeightOffloadProblem& problem);  // 2 L
int LayerOf(const WeightOffloadProblem& problem, int operation);
Pass PassOf(const WeightOffloadProblem& problem, int operation);
Nanos DurationOf(const WeightOffloadProblem& problem, int operation);
// "B3", "F12".
std::string OperationName(const WeightOffloadProblem& problem, int operation);

// What an operation holds that is not a weight. Weights in device memory come on top, its own too.
struct OperationMemory {
  Bytes during;  // M_F or M_B of equation 1, less |w_i|
  Bytes after;   // until the next operation begins
  friend bool operator==(const OperationMemory&, const OperationMemory&) = default;
};
std::vector<OperationMemory> OperationMemories(const WeightOffloadProblem& problem);  // [operation]

// E_o of Algorithm 1 to the letter: M_o + sum of |w_i| - M_GPU, if all weights stay; negative where
// there is room left. M_o counts the operation's own weight and the sum counts it again, as does
// equation 4 of the paper. So a selection that leaves no overflow leaves room for one more weight,
// in which a transfer runs beside the operation; the idle times of Table 1 follow from this reading
// alone. [operation]
std::vector<Bytes> Overflows(const WeightOffloadProblem& problem);
// Without that room: what must be away in each operation. [operation]
std::vector<Bytes> LeastOverflows(const WeightOffloadProblem& problem);

Nanos SendTime(const WeightOffloadProblem& problem, int layer);   // device to host
Nanos FetchTime(const WeightOffloadProblem& problem, int layer);  // host to device
// Sum of all operations' times: a step that never waits.
Nanos ComputeTime(const WeightOffloadProblem& problem);
Bytes WeightBytes(const WeightOffloadProblem& problem);

// Errors: InvalidArgument for no layers, an operation without time, a negative size, a rate that is
// not positive, or numbers whose sums cannot be counted; ResourceExhausted if an operation does not
// fit in the device by itself. Both name the layer.
absl::Status CheckWeightOffloadProblem(const WeightOffloadProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_PROBLEM_H_
