#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "partitioner/methods.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Prefix = std::vector<int64_t>;  // prefix[l]: FLOPs of layers [0, l)

// Where each stage may end so that all stages stay within `limit` and no stage is empty: stage s
// ends in [earliest[s], latest[s]].
struct EndRanges {
  std::vector<int> earliest;
  std::vector<int> latest;
};

std::optional<EndRanges> FeasibleEnds(const Prefix& prefix, int stages, int64_t limit) {
  const int layers = static_cast<int>(prefix.size()) - 1;
  EndRanges ends{std::vector<int>(stages), std::vector<int>(stages)};
  int end = 0;
  for (int stage = 0; stage < stages; ++stage) {  // as far right as can be
    const int most = layers - (stages - 1 - stage);
    const int begin = end;
    while (end < most && prefix[end + 1] - prefix[begin] <= limit) ++end;
    if (end == begin) return std::nullopt;
    ends.latest[stage] = end;
  }
  if (end != layers) return std::nullopt;
  int begin = layers;
  for (int stage = stages - 1; stage >= 0; --stage) {  // as far left as can be
    ends.earliest[stage] = begin;
    const int least = stage;
    const int right = begin;
    while (begin > least && prefix[right] - prefix[begin - 1] <= limit) --begin;
  }
  return ends;
}

// The smallest limit that some partition keeps, by bisection; a limit is checked in O(layers).
int64_t SmallestLargestStage(const Prefix& prefix, int stages) {
  int64_t too_small = -1;
  int64_t enough = prefix.back();
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (FeasibleEnds(prefix, stages, middle) ? enough : too_small) = middle;
  }
  return enough;
}

// Among the partitions within `limit` the one with the least sum of squares: the most even one.
// Dynamic programming over the ends of stages; of equal sums the one with earlier cuts.
StagePartition MostEven(const Prefix& prefix, const EndRanges& ends, int64_t limit) {
  const int stages = static_cast<int>(ends.latest.size());
  const int layers = static_cast<int>(prefix.size()) - 1;
  constexpr absl::uint128 kImpossible = absl::Uint128Max();
  std::vector<std::vector<int>> begin_of(stages, std::vector<int>(layers + 1, 0));
  std::vector<absl::uint128> previous(layers + 1, kImpossible);
  previous[0] = 0;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<absl::uint128> sums(layers + 1, kImpossible);
    const int first = stage == 0 ? 0 : ends.earliest[stage - 1];
    const int last = stage == 0 ? 0 : ends.latest[stage - 1];
    for (int end = ends.earliest[stage]; end <= ends.latest[stage]; ++end) {
      for (int begin = first; begin <= std::min(last, end - 1); ++begin) {
        const int64_t flops = prefix[end] - prefix[begin];
        if (flops > limit || previous[begin] == kImpossible) continue;
        const absl::uint128 square =
            absl::uint128(static_cast<uint64_t>(flops)) * static_cast<uint64_t>(flops);
        if (previous[begin] + square >= sums[end]) continue;
        sums[end] = previous[begin] + square;
        begin_of[stage][end] = begin;
      }
    }
    previous = std::move(sums);
  }
  SIPHON_CHECK(previous[layers] != kImpossible, "a limit found feasible has a partition");
  StagePartition partition;
  partition.stages.resize(stages);
  for (int stage = stages - 1, end = layers; stage >= 0; --stage) {
    partition.stages[stage] = {begin_of[stage][end], end};
    end = begin_of[stage][end];
  }
  return partition;
}

}  // namespace

StagePartition PartitionBalanced(const ModelSpec& model, int stages) {
  Prefix prefix = {0};
  for (const LayerSpec& layer : model.layers) {
    prefix.push_back(prefix.back() + std::max<int64_t>(layer.forward_flops, 0));
  }
  const int64_t limit = SmallestLargestStage(prefix, stages);
  const std::optional<EndRanges> ends = FeasibleEnds(prefix, stages, limit);
  SIPHON_CHECK(ends.has_value(), "all layers' FLOPs are a limit that can be kept");
  return MostEven(prefix, *ends, limit);
}

}  // namespace siphon
