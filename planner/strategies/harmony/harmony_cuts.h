#ifndef SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_CUTS_H_
#define SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_CUTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// Groups of microbatches, each of which needs a block's weights once.
struct HarmonyVisits {
  int forward = 1;
  int backward = 1;
  friend bool operator==(const HarmonyVisits&, const HarmonyVisits&) = default;
};

// Stages of Harmony-PP. A block is neighbouring stages of one worker; the blocks go around the
// workers `rounds` times.
struct HarmonyCutShape {
  int rounds = 1;
  int block = 1;  // stages
  HarmonyVisits visits;
  friend bool operator==(const HarmonyCutShape&, const HarmonyCutShape&) = default;
};

// What a worker has, to compute and to copy with.
struct HarmonyWorkers {
  int count = 1;
  int microbatches = 1;
  BytesPerSecond to_host;    // of one worker while all of them copy; 0: no limit
  BytesPerSecond from_host;  // likewise
  Bytes room;  // for parameters, gradients and optimizer state of the stage that steps; 0: no limit
};
// Those of the topology's first devices, the slowest one's share of its switch; or, without
// devices, of workers with `host_rate` together. `room` is not filled in.
HarmonyWorkers WorkersThatShare(const Topology& topology, BytesPerSecond host_rate, int count);

// Whether a block's copies run beside the one before it (double buffers), or before it computes.
enum class HarmonyCopies { kHidden, kExposed };

// Cuts of one model. Thread-compatible; remembers what its answers have in common.
class HarmonyCutter {
 public:
  HarmonyCutter(const ModelProfile& profile, const HarmonyWorkers& workers);

  // Consecutive layers, each stage ending where its share of all time or bytes is reached.
  StagePartition ByTime(int stages) const;
  StagePartition ByBytes(int stages) const;

  // Load balance of Harmony, section 3, "task packing": of compute, memory and swap at once. The
  // workers of a round wait for the slowest block, so that a step takes about the sum over rounds
  // of the longest block (StepOf): the least there is of that, every stage within `room`. Of those
  // in each round the one whose largest block has fewest bytes. Blocks are cut by bytes. Of a block
  // with several stages `room` is what they may take on average.
  //
  // Nothing where there is none, or for more than kMostLayers.
  // O(workers x layers^2 x log(layers) + rounds x layers^2).
  static constexpr int kMostLayers = 256;
  std::optional<StagePartition> InBalance(const HarmonyCutShape& shape, HarmonyCopies copies);

  // Sum over rounds of the longest block: compute or copies of all microbatches, activations
  // computed again. Requires: the partition has the shape's stages.
  Nanos StepOf(const StagePartition& partition, const HarmonyCutShape& shape,
               HarmonyCopies copies) const;

 private:
  using Table = std::vector<std::vector<Nanos>>;  // [begin][end] of layers
  struct Sums {                                   // of layers [0, l)
    Nanos forward;
    Nanos backward;
    Bytes parameters;
    Bytes gradients;
    Bytes optimizer_state;
  };

  Nanos TimeOf(const StageRange& block, const HarmonyVisits& visits, HarmonyCopies copies) const;
  Bytes BytesOf(const StageRange& block) const;
  bool HasRoom(const StageRange& layers, int stages) const;
  // TimeOf, or kTooLong for a block that has too many bytes.
  Nanos TimeWithin(const StageRange& block, const HarmonyCutShape& shape,
                   HarmonyCopies copies) const;
  // The longest block of the best round that has these layers.
  const Table& BestRounds(const HarmonyCutShape& shape, HarmonyCopies copies);
  // The layers of each round; empty where there is no cut.
  std::vector<StageRange> Rounds(const Table& longest, int rounds) const;
  // `parts` of at least `least` layers, none longer than `limit`, with the fewest bytes in the
  // largest. Requires: there is such a cut.
  std::vector<StageRange> FewestBytes(const StageRange& layers, int parts, int least, Nanos limit,
                                      const HarmonyCutShape& shape, HarmonyCopies copies) const;

  HarmonyWorkers workers_;
  std::vector<int64_t> times_;  // [layer]
  std::vector<int64_t> bytes_;  // likewise
  std::vector<Sums> sums_;
  std::map<std::tuple<int, int, int, HarmonyCopies>, Table> rounds_;  // of block and both visits
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_CUTS_H_
