#include "planner/weight_offload/weight_offload_problem.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/performance/out_of_core.h"

namespace siphon {
namespace {

// Sums over a step stay far below 63 bits: bytes here, and nanoseconds (13 days) below.
constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostNanos = int64_t{1} << 50;

std::string Named(const WeightOffloadProblem& problem, size_t layer) {
  return absl::StrCat("layer ", layer + 1, " ('", problem.layers[layer].name, "')");
}

absl::Status CheckLayer(const WeightOffloadProblem& problem, size_t index) {
  const WeightOffloadLayer& layer = problem.layers[index];
  if (layer.forward.value < 1 || layer.backward.value < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(problem, index), ": forward ", layer.forward.value, " ns and backward ",
                     layer.backward.value, " ns must each be at least 1 ns"));
  }
  if (layer.weight.value < 0 || layer.activation.value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(problem, index), ": weight ", layer.weight.value, " B and activation ",
                     layer.activation.value, " B must not be negative"));
  }
  if (layer.forward.value > kMostNanos || layer.backward.value > kMostNanos ||
      layer.weight.value > kMostBytes || layer.activation.value > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(Named(problem, index), ": times above ",
                                                   kMostNanos, " ns or sizes above ", kMostBytes,
                                                   " B are not counted"));
  }
  return absl::OkStatus();
}

absl::Status CheckSums(const WeightOffloadProblem& problem) {
  Nanos time;
  Bytes size = problem.input;
  for (size_t layer = 0; layer < problem.layers.size(); ++layer) {
    time += problem.layers[layer].forward + problem.layers[layer].backward;
    size += problem.layers[layer].weight + problem.layers[layer].activation;
    if (time.value > kMostNanos || size.value > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("up to ", Named(problem, layer), ": a step takes more than ", kMostNanos,
                       " ns or holds more than ", kMostBytes, " B, which is not counted"));
    }
  }
  for (const BytesPerSecond rate : {problem.out, problem.in}) {
    const double seconds =
        static_cast<double>(WeightBytes(problem).value) / static_cast<double>(rate.value);
    if (seconds * 1e9 > static_cast<double>(kMostNanos)) {
      return absl::InvalidArgumentError(absl::StrCat("a link of ", rate.value,
                                                     " B/s takes more than ", kMostNanos,
                                                     " ns for all weights, which is not counted"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int OperationCount(const WeightOffloadProblem& problem) {
  return 2 * static_cast<int>(problem.layers.size());
}

int LayerOf(const WeightOffloadProblem& problem, int operation) {
  const int layers = static_cast<int>(problem.layers.size());
  return operation < layers ? layers - 1 - operation : operation - layers;
}

Pass PassOf(const WeightOffloadProblem& problem, int operation) {
  return operation < static_cast<int>(problem.layers.size()) ? Pass::kBackward : Pass::kForward;
}

Nanos DurationOf(const WeightOffloadProblem& problem, int operation) {
  const WeightOffloadLayer& layer = problem.layers[LayerOf(problem, operation)];
  return PassOf(problem, operation) == Pass::kForward ? layer.forward : layer.backward;
}

std::string OperationName(const WeightOffloadProblem& problem, int operation) {
  return absl::StrCat(PassOf(problem, operation) == Pass::kForward ? "F" : "B",
                      LayerOf(problem, operation) + 1);
}

std::vector<OperationMemory> OperationMemories(const WeightOffloadProblem& problem) {
  const size_t layers = problem.layers.size();
  std::vector<OperationMemory> memories(2 * layers);
  Bytes below = problem.input;  // sum of |a_k| for k < i
  for (size_t layer = 0; layer < layers; ++layer) {
    const Bytes through = below + problem.layers[layer].activation;
    memories[layers + layer] = {through, through};
    // While B_i computes the gradient of a_{i-1}, that of a_i and of w_i are still there.
    memories[layers - 1 - layer] = {problem.layers[layer].weight + through, below};
    below = through;
  }
  return memories;
}

std::vector<Bytes> LeastOverflows(const WeightOffloadProblem& problem) {
  const Bytes weights = WeightBytes(problem);
  std::vector<Bytes> overflows;
  for (const OperationMemory& memory : OperationMemories(problem)) {
    overflows.push_back(memory.during + weights - problem.capacity);
  }
  return overflows;
}

std::vector<Bytes> Overflows(const WeightOffloadProblem& problem) {
  std::vector<Bytes> overflows = LeastOverflows(problem);
  for (int operation = 0; operation < OperationCount(problem); ++operation) {
    overflows[operation] += problem.layers[LayerOf(problem, operation)].weight;
  }
  return overflows;
}

Nanos SendTime(const WeightOffloadProblem& problem, int layer) {
  return CopyTime(problem.layers[layer].weight, problem.out, Nanos(0));
}

Nanos FetchTime(const WeightOffloadProblem& problem, int layer) {
  return CopyTime(problem.layers[layer].weight, problem.in, Nanos(0));
}

Nanos ComputeTime(const WeightOffloadProblem& problem) {
  Nanos total;
  for (const WeightOffloadLayer& layer : problem.layers) total += layer.forward + layer.backward;
  return total;
}

Bytes WeightBytes(const WeightOffloadProblem& problem) {
  Bytes total;
  for (const WeightOffloadLayer& layer : problem.layers) total += layer.weight;
  return total;
}

absl::Status CheckWeightOffloadProblem(const WeightOffloadProblem& problem) {
  if (problem.layers.empty()) return absl::InvalidArgumentError("there is no layer");
  for (size_t layer = 0; layer < problem.layers.size(); ++layer) {
    if (absl::Status status = CheckLayer(problem, layer); !status.ok()) return status;
  }
  if (problem.input.value < 0 || problem.input.value > kMostBytes || problem.out.value < 1 ||
      problem.in.value < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input (", problem.input.value, " B) must be 0 to ", kMostBytes,
                     " B, and the link's rates (", problem.out.value, " B/s out, ",
                     problem.in.value, " B/s in) more than 0"));
  }
  if (absl::Status status = CheckSums(problem); !status.ok()) return status;
  const std::vector<OperationMemory> memories = OperationMemories(problem);
  for (int operation = 0; operation < OperationCount(problem); ++operation) {
    const int layer = LayerOf(problem, operation);
    const Bytes needed = memories[operation].during + problem.layers[layer].weight;
    if (needed > problem.capacity) {
      return absl::ResourceExhaustedError(
          absl::StrCat(OperationName(problem, operation), " of ", Named(problem, layer), " needs ",
                       FormatBytes(needed), " with no other weight in memory; the device has ",
                       FormatBytes(problem.capacity)));
    }
  }
  return absl::OkStatus();
}

}  // namespace siphon
