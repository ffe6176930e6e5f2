#include "planner/weight_offload/weight_offload_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/performance/out_of_core.h"

namespace siphon {
namespace {

// What must be away in the operations of each layer, not below 0. [layer]
std::vector<Bytes> AwayByLayer(const WeightOffloadProblem& problem) {
  const std::vector<Bytes> overflows = LeastOverflows(problem);
  std::vector<Bytes> away(problem.layers.size());
  for (size_t operation = 0; operation < overflows.size(); ++operation) {
    Bytes& layer = away[LayerOf(problem, static_cast<int>(operation))];
    layer = std::max(layer, overflows[operation]);
  }
  return away;
}

enum class Direction { kFetch, kSend };

Nanos LinkTime(const WeightOffloadProblem& problem, Direction direction, Bytes bytes) {
  return CopyTime(bytes, direction == Direction::kFetch ? problem.in : problem.out, Nanos(0));
}

// The wait that follows from what is away at one operation and must have come since, or must come
// before, another one. Fetches: away in `operation`, needed by an operation of the next `span`.
// Sends: away in `operation`, changed by a backward among the `span` before it.
Nanos LongestWaitAround(const WeightOffloadProblem& problem, int operation, Bytes away,
                        Direction direction) {
  const int count = OperationCount(problem);
  const int own = LayerOf(problem, operation);
  Bytes others = WeightBytes(problem) - problem.layers[own].weight;  // may be away untouched
  std::vector<bool> touched(problem.layers.size(), false);
  touched[own] = true;
  Nanos between;
  Nanos longest;
  for (int span = 1; span < count; ++span) {
    const int step = direction == Direction::kFetch ? span : count - span;
    const int other = (operation + step) % count;
    const int layer = LayerOf(problem, other);
    const bool counts = direction == Direction::kFetch || PassOf(problem, other) == Pass::kBackward;
    if (counts && !touched[layer]) {
      touched[layer] = true;
      others -= problem.layers[layer].weight;
    }
    if (away > others) {
      longest = std::max(longest, LinkTime(problem, direction, away - others) - between);
    }
    between += DurationOf(problem, other);
  }
  return longest;
}

}  // namespace

Bytes LeastFetchedBytes(const WeightOffloadProblem& problem) {
  const size_t layers = problem.layers.size();
  const std::vector<Bytes> away = AwayByLayer(problem);
  // Absences in the order in which windows slide over them: between B and F of layers 1 .. L, then
  // between F and B of layers 1 .. L. That of layer j is [j + 1, L + j - 1].
  std::vector<Bytes> taken(2 * layers);
  Bytes total;
  for (size_t layer = 0; layer < layers; ++layer) {
    Bytes missing = away[layer];
    for (size_t place = layer + 1; place < layers + layer; ++place) missing -= taken[place];
    for (size_t place = layers + layer; place > layer + 1 && missing.value > 0; --place) {
      const size_t absence = place - 1;
      const Bytes room = problem.layers[absence % layers].weight - taken[absence];
      const Bytes more = std::min(room, missing);
      taken[absence] += more;
      missing -= more;
      total += more;
    }
  }
  return total;
}

Nanos WeightOffloadBound(const WeightOffloadProblem& problem) {
  const Nanos compute = ComputeTime(problem);
  const std::vector<Bytes> away = AwayByLayer(problem);
  const Bytes fetched = LeastFetchedBytes(problem);
  // A weight is sent once for two absences at best.
  const Bytes sent =
      std::max(Bytes((fetched.value + 1) / 2), *std::max_element(away.begin(), away.end()));
  Nanos bound = std::max({compute, LinkTime(problem, Direction::kFetch, fetched),
                          LinkTime(problem, Direction::kSend, sent)});
  const std::vector<Bytes> overflows = LeastOverflows(problem);
  for (int operation = 0; operation < OperationCount(problem); ++operation) {
    if (overflows[operation].value <= 0) continue;
    for (const Direction direction : {Direction::kFetch, Direction::kSend}) {
      bound = std::max(
          bound, compute + LongestWaitAround(problem, operation, overflows[operation], direction));
    }
  }
  return bound;
}

}  // namespace siphon
