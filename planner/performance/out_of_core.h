#ifndef SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_H_
#define SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// Training one batch on one device whose memory may be too small for all that the forward saves:
// the model of Zhang et al., "Breaking the limitation of GPU memory for deep learning workloads"
// (IPSJ SIG HPC 170, 2019), in bytes and integer nanoseconds.
//
// Parameters, gradients and optimizer state stay in near memory. What swaps is a layer's saved
// tensors, as one buffer: needed from the start of the layer's forward to the end of its backward.

struct OutOfCoreLayer {
  std::string name;
  Nanos forward;
  Nanos backward;
  Bytes saved;
  friend bool operator==(const OutOfCoreLayer&, const OutOfCoreLayer&) = default;
};

// The way from near to far memory and back. Both directions run at once (the paper, 3.1).
struct FarMemoryPath {
  BytesPerSecond out;
  BytesPerSecond in;
  Nanos latency;  // of each copy
  friend bool operator==(const FarMemoryPath&, const FarMemoryPath&) = default;
};

// Equation 5: a copy is as fast as the slowest of far memory, near memory and their connection.
BytesPerSecond SwapRate(BytesPerSecond far, BytesPerSecond near, BytesPerSecond connection);

// latency + bytes / rate, rounded up to a whole nanosecond; 0 for no bytes. Requires: rate > 0.
Nanos CopyTime(Bytes bytes, BytesPerSecond rate, Nanos latency);

struct OutOfCoreProblem {
  std::vector<OutOfCoreLayer> layers;
  FarMemoryPath path;
  Bytes capacity;  // of near memory, for saved tensors
  friend bool operator==(const OutOfCoreProblem&, const OutOfCoreProblem&) = default;
};

// Sum of all layers' saved tensors.
Bytes SavedBytes(const OutOfCoreProblem& problem);
// Time of all forwards and backwards: a step that fits in near memory.
Nanos ComputeTime(const OutOfCoreProblem& problem);

// The first layer, which runs forward first, is layer 0 here and "1" in text.
enum class OutOfCoreLane { kCompute, kCopyOut, kCopyIn };
inline constexpr int kOutOfCoreLanes = 3;

enum class OutOfCoreKind {
  kForward,
  kBackward,
  kCopyOut,
  kCopyIn,
  kEvict,  // the computation waits while pages are written out
  kFault,  // and while they are read in
};

// A task of the simulated step. A lane runs its tasks in the order of the list, one at a time.
struct OutOfCoreTask {
  OutOfCoreKind kind = OutOfCoreKind::kForward;
  int layer = 0;
  Nanos duration;
  std::vector<int> after;  // earlier tasks of the list that must have ended
  Bytes acquires;          // near memory taken when it starts
  Bytes releases;          // and given back when it ends
  Bytes moved;             // across the path
};

// The lane of a kind: copies run beside the computation, evictions and faults in it.
OutOfCoreLane LaneOf(OutOfCoreKind kind);

// What a strategy does in a step. Tasks stand in an order in which they can run; forwards come
// before backwards.
struct OutOfCoreTasks {
  std::vector<OutOfCoreTask> tasks;
  int swapped_layers = 0;  // layers of which at least a part leaves near memory
};

// A strategy, as the tasks of a step and as a formula for equal layers. To add one: a file
// beside this one, a line in out_of_core_strategies.def.
struct OutOfCoreStrategy {
  absl::string_view name;   // as on the command line
  absl::string_view title;  // for people
  // Errors: ResourceExhausted if it cannot run in the capacity at all, naming the layer.
  absl::StatusOr<OutOfCoreTasks> (*tasks)(const OutOfCoreProblem& problem);
  // Step time of equal layers; equal to the simulated one to the nanosecond.
  // Errors: InvalidArgument if layers differ; ResourceExhausted as above.
  absl::StatusOr<Nanos> (*closed_form)(const OutOfCoreProblem& problem);
};
const std::vector<OutOfCoreStrategy>& OutOfCoreStrategies();
// Errors: NotFound, known ones listed.
absl::StatusOr<OutOfCoreStrategy> FindOutOfCoreStrategy(absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_OUT_OF_CORE_H_
