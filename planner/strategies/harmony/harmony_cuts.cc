#include "planner/strategies/harmony/harmony_cuts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr Nanos kTooLong{std::numeric_limits<int64_t>::max()};

// None is empty.
StagePartition CutByShares(const std::vector<int64_t>& weights, int stages) {
  absl::int128 all = 0;
  for (const int64_t weight : weights) all += weight;
  const auto layers = static_cast<int>(weights.size());
  StagePartition partition;
  absl::int128 sum = 0;
  int layer = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int begin = layer;
    const int last = layers - (stages - 1 - stage);  // one layer at least for each stage behind
    do {
      sum += weights[layer++];
      // Half of the next layer on this side of the border counts as within.
    } while (layer < last && (stage + 1 == stages ||
                              2 * stages * sum + stages * weights[layer] <= 2 * all * (stage + 1)));
    partition.stages.push_back({begin, layer});
  }
  return partition;
}

Nanos CopyTime(Bytes bytes, BytesPerSecond rate) {
  if (rate == BytesPerSecond(0)) return Nanos(0);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return Nanos(
      static_cast<int64_t>(absl::int128(bytes.value) * kNanosPerSecond / absl::int128(rate.value)));
}

BytesPerSecond BothWays(BytesPerSecond alone, BytesPerSecond both) {
  return both > BytesPerSecond(0) ? both : alone;
}

// Of two limits, 0 being none.
BytesPerSecond Slower(BytesPerSecond a, BytesPerSecond b) {
  if (a == BytesPerSecond(0) || b == BytesPerSecond(0)) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

HarmonyWorkers WorkersThatShare(const Topology& topology, BytesPerSecond host_rate, int count) {
  HarmonyWorkers workers{.count = count};
  if (topology.devices.empty()) {
    workers.to_host = workers.from_host = BytesPerSecond(host_rate.value / count);
    return workers;
  }
  for (const PcieSwitch& uplink : topology.switches) {
    const auto sharers = std::count_if(uplink.devices.begin(), uplink.devices.end(),
                                       [&](DeviceId device) { return device.value < count; });
    if (sharers == 0) continue;
    const BytesPerSecond out = BothWays(uplink.to_host, uplink.to_host_both);
    const BytesPerSecond in = BothWays(uplink.from_host, uplink.from_host_both);
    workers.to_host = Slower(workers.to_host, BytesPerSecond(out.value / sharers));
    workers.from_host = Slower(workers.from_host, BytesPerSecond(in.value / sharers));
  }
  return workers;
}

HarmonyCutter::HarmonyCutter(const ModelProfile& profile, const HarmonyWorkers& workers)
    : workers_(workers), sums_(1) {
  for (const LayerProfile& layer : profile.layers) {
    const Bytes weights = layer.parameters + layer.gradients + layer.optimizer_state;
    times_.push_back((layer.forward + WholeBackward(layer)).value);
    bytes_.push_back((weights + SavedBytes(layer)).value);
    Sums sums = sums_.back();
    sums.forward += layer.forward;
    sums.backward += WholeBackward(layer) + RecomputeTime(layer);
    sums.parameters += layer.parameters;
    sums.gradients += layer.gradients;
    sums.optimizer_state += layer.optimizer_state;
    sums_.push_back(sums);
  }
}

StagePartition HarmonyCutter::ByTime(int stages) const { return CutByShares(times_, stages); }
StagePartition HarmonyCutter::ByBytes(int stages) const { return CutByShares(bytes_, stages); }

Nanos HarmonyCutter::TimeOf(const StageRange& block, const HarmonyVisits& visits,
                            HarmonyCopies copies) const {
  const Sums& begin = sums_[static_cast<size_t>(block.begin)];
  const Sums& end = sums_[static_cast<size_t>(block.end)];
  const Bytes parameters = end.parameters - begin.parameters;
  const Bytes gradients = end.gradients - begin.gradients;
  const Bytes state = end.optimizer_state - begin.optimizer_state;
  const Nanos forward = (end.forward - begin.forward) * workers_.microbatches;
  const Nanos backward = (end.backward - begin.backward) * workers_.microbatches;
  const Nanos forward_in = CopyTime(parameters * visits.forward, workers_.from_host);
  const Nanos in = CopyTime((parameters + gradients) * visits.backward + state, workers_.from_host);
  const Nanos out = CopyTime(gradients * visits.backward + parameters + state, workers_.to_host);
  if (copies == HarmonyCopies::kExposed) return forward + backward + forward_in + in;
  return std::max(forward, forward_in) + std::max({backward, in, out});
}

Bytes HarmonyCutter::BytesOf(const StageRange& block) const {
  const Sums& begin = sums_[static_cast<size_t>(block.begin)];
  const Sums& end = sums_[static_cast<size_t>(block.end)];
  return end.parameters + end.gradients + end.optimizer_state -
         (begin.parameters + begin.gradients + begin.optimizer_state);
}

bool HarmonyCutter::HasRoom(const StageRange& layers, int stages) const {
  return workers_.room == Bytes(0) || BytesOf(layers) <= workers_.room * stages;
}

Nanos HarmonyCutter::TimeWithin(const StageRange& block, const HarmonyCutShape& shape,
                                HarmonyCopies copies) const {
  return HasRoom(block, shape.block) ? TimeOf(block, shape.visits, copies) : kTooLong;
}

// Longer blocks take longer, so the best begin of a round's last block is where it and what is
// before it take the same: found by bisection.
const HarmonyCutter::Table& HarmonyCutter::BestRounds(const HarmonyCutShape& shape,
                                                      HarmonyCopies copies) {
  const auto [found, is_new] =
      rounds_.try_emplace({shape.block, shape.visits.forward, shape.visits.backward, copies});
  if (!is_new) return found->second;
  const auto layers = static_cast<int>(times_.size());
  Table least(static_cast<size_t>(layers) + 1,
              std::vector<Nanos>(static_cast<size_t>(layers) + 1, kTooLong));
  for (int begin = 0; begin < layers; ++begin) {
    std::vector<Nanos>& row = least[static_cast<size_t>(begin)];
    for (int end = begin + shape.block; end <= layers; ++end) {
      row[static_cast<size_t>(end)] = TimeWithin({begin, end}, shape, copies);
    }
    for (int blocks = 2; blocks <= workers_.count; ++blocks) {
      const int first = begin + (blocks - 1) * shape.block;
      // From the back: what stands before `end` is still of one block less.
      for (int end = layers; end > begin; --end) {
        int low = first;
        int high = end - shape.block;
        if (low > high) {
          row[static_cast<size_t>(end)] = kTooLong;
          continue;
        }
        const auto last_block = [&](int cut) { return TimeWithin({cut, end}, shape, copies); };
        while (low < high) {
          const int middle = low + (high - low) / 2;
          if (row[static_cast<size_t>(middle)] >= last_block(middle)) {
            high = middle;
          } else {
            low = middle + 1;
          }
        }
        Nanos best = std::max(row[static_cast<size_t>(low)], last_block(low));
        if (low > first) {
          best = std::min(best, std::max(row[static_cast<size_t>(low) - 1], last_block(low - 1)));
        }
        row[static_cast<size_t>(end)] = best;
      }
    }
  }
  return found->second = std::move(least);
}

std::vector<StageRange> HarmonyCutter::FewestBytes(const StageRange& layers, int parts, int least,
                                                   Nanos limit, const HarmonyCutShape& shape,
                                                   HarmonyCopies copies) const {
  const int count = layers.end - layers.begin;
  constexpr Bytes kImpossible{std::numeric_limits<int64_t>::max()};
  std::vector<std::vector<int>> begin_of(static_cast<size_t>(parts),
                                         std::vector<int>(static_cast<size_t>(count) + 1));
  std::vector<Bytes> before(static_cast<size_t>(count) + 1, kImpossible);
  before[0] = Bytes(0);
  for (int part = 0; part < parts; ++part) {
    std::vector<Bytes> here(static_cast<size_t>(count) + 1, kImpossible);
    for (int end = least; end <= count; ++end) {
      for (int begin = end - least; begin >= 0; --begin) {
        const StageRange range{layers.begin + begin, layers.begin + end};
        if (TimeWithin(range, shape, copies) > limit) break;
        const Bytes largest = std::max(before[static_cast<size_t>(begin)], BytesOf(range));
        if (largest >= here[static_cast<size_t>(end)]) continue;
        here[static_cast<size_t>(end)] = largest;
        begin_of[static_cast<size_t>(part)][static_cast<size_t>(end)] = begin;
      }
    }
    before = std::move(here);
  }
  SIPHON_CHECK(before.back() != kImpossible, "there is a cut within the limit");
  std::vector<StageRange> ranges(static_cast<size_t>(parts));
  int end = count;
  for (int part = parts - 1; part >= 0; --part) {
    const int begin = begin_of[static_cast<size_t>(part)][static_cast<size_t>(end)];
    ranges[static_cast<size_t>(part)] = {layers.begin + begin, layers.begin + end};
    end = begin;
  }
  return ranges;
}

std::vector<StageRange> HarmonyCutter::Rounds(const Table& longest, int rounds) const {
  const size_t layers = times_.size();
  std::vector<std::vector<size_t>> begin_of;
  std::vector<Nanos> before(layers + 1, kTooLong);
  before[0] = Nanos(0);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Nanos> here(layers + 1, kTooLong);
    std::vector<size_t>& begins = begin_of.emplace_back(layers + 1);
    for (size_t begin = 0; begin < layers; ++begin) {
      if (before[begin] == kTooLong) continue;
      for (size_t end = begin + 1; end <= layers; ++end) {
        if (longest[begin][end] == kTooLong) continue;
        const Nanos all = before[begin] + longest[begin][end];
        if (all >= here[end]) continue;
        here[end] = all;
        begins[end] = begin;
      }
    }
    before = std::move(here);
  }
  if (before.back() == kTooLong) return {};
  std::vector<StageRange> ranges(begin_of.size());
  for (size_t round = begin_of.size(), end = layers; round > 0; --round) {
    const size_t begin = begin_of[round - 1][end];
    ranges[round - 1] = {static_cast<int>(begin), static_cast<int>(end)};
    end = begin;
  }
  return ranges;
}

std::optional<StagePartition> HarmonyCutter::InBalance(const HarmonyCutShape& shape,
                                                       HarmonyCopies copies) {
  const auto layers = static_cast<int>(times_.size());
  if (layers > kMostLayers || layers < workers_.count * shape.rounds * shape.block) {
    return std::nullopt;
  }
  const Table& longest = BestRounds(shape, copies);
  const HarmonyCutShape one_stage{.visits = shape.visits};
  StagePartition partition;
  for (const StageRange& round : Rounds(longest, shape.rounds)) {
    const Nanos limit = longest[static_cast<size_t>(round.begin)][static_cast<size_t>(round.end)];
    for (const StageRange& block :
         FewestBytes(round, workers_.count, shape.block, limit, shape, copies)) {
      for (const StageRange& stage :
           FewestBytes(block, shape.block, 1, kTooLong, one_stage, copies)) {
        if (!HasRoom(stage, 1)) return std::nullopt;
        partition.stages.push_back(stage);
      }
    }
  }
  if (partition.stages.empty()) return std::nullopt;
  return partition;
}

Nanos HarmonyCutter::StepOf(const StagePartition& partition, const HarmonyCutShape& shape,
                            HarmonyCopies copies) const {
  Nanos all;
  const std::vector<StageRange>& stages = partition.stages;
  const auto round = static_cast<size_t>(workers_.count) * static_cast<size_t>(shape.block);
  for (size_t begin = 0; begin < stages.size(); begin += round) {
    Nanos longest;
    for (size_t first = begin; first < begin + round; first += static_cast<size_t>(shape.block)) {
      const StageRange block{stages[first].begin, stages[first + shape.block - 1].end};
      longest = std::max(longest, TimeOf(block, shape.visits, copies));
    }
    all += longest;
  }
  return all;
}

}  // namespace siphon
