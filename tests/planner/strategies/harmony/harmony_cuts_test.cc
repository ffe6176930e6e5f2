#include "planner/strategies/harmony/harmony_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

constexpr HarmonyCopies kBoth[] = {HarmonyCopies::kHidden, HarmonyCopies::kExposed};

struct SmallLayer {
  int time = 0;   // forward; its backward makes that again and takes nothing more
  int bytes = 0;  // parameters
};

ModelProfile ProfileOf(const std::vector<SmallLayer>& layers) {
  ModelProfile profile;
  for (const SmallLayer& layer : layers) {
    profile.layers.push_back({.forward = Nanos(layer.time), .parameters = Bytes(layer.bytes)});
  }
  return profile;
}

// One microbatch; a byte a nanosecond comes from the host.
HarmonyWorkers TwoHarmonyWorkers() { return {.count = 2, .from_host = kByteANano}; }

StagePartition Stages(const std::vector<int>& ends) {
  StagePartition partition;
  int begin = 0;
  for (const int end : ends) {
    partition.stages.push_back({begin, end});
    begin = end;
  }
  return partition;
}

// Bytes first, time last. With double buffers a stage takes the larger of its sums, forward and
// backward:
//   by time   10+10+20+30 | 50   of bytes 70+30+20+20 | 10:  140 forward and backward
//   by bytes  10 | 10+20+30+50   of bytes 70 | 30+20+20+10:  110
//   balanced  10+10 | 20+30+50   of bytes 70+30 | 20+20+10:  100
TEST(HarmonyCuts, BalanceOfTimeAndSwapBeatsThatOfEither) {
  HarmonyCutter cutter(ProfileOf({{10, 70}, {10, 30}, {20, 20}, {30, 20}, {50, 10}}),
                       TwoHarmonyWorkers());
  const HarmonyCutShape shape;
  EXPECT_EQ(cutter.ByTime(2), Stages({4, 5}));
  EXPECT_EQ(cutter.ByBytes(2), Stages({1, 5}));
  const auto balanced = cutter.InBalance(shape, HarmonyCopies::kHidden);
  EXPECT_EQ(balanced, Stages({2, 5}));
  EXPECT_EQ(cutter.StepOf(cutter.ByTime(2), shape, HarmonyCopies::kHidden), Nanos(2 * 140));
  EXPECT_EQ(cutter.StepOf(cutter.ByBytes(2), shape, HarmonyCopies::kHidden), Nanos(2 * 110));
  EXPECT_EQ(cutter.StepOf(*balanced, shape, HarmonyCopies::kHidden), Nanos(2 * 100));
}

// Nothing hides copies: layers take 80, 40, 40, 50 and 60 in each direction, so 120 | 150.
TEST(HarmonyCuts, ExposedCopiesAddUp) {
  HarmonyCutter cutter(ProfileOf({{10, 70}, {10, 30}, {20, 20}, {30, 20}, {50, 10}}),
                       TwoHarmonyWorkers());
  const HarmonyCutShape shape;
  EXPECT_EQ(cutter.InBalance(shape, HarmonyCopies::kExposed), Stages({2, 5}));
  EXPECT_EQ(cutter.StepOf(Stages({2, 5}), shape, HarmonyCopies::kExposed), Nanos(2 * 150));
}

// Six equal layers in two rounds of two workers: what is more than one layer a stage is in one
// round, 2 + 1 long; by shares each round has a long stage.
TEST(HarmonyCuts, LongStagesShareARound) {
  HarmonyCutter cutter(ProfileOf(std::vector<SmallLayer>(6, {10, 0})), TwoHarmonyWorkers());
  const HarmonyCutShape shape{.rounds = 2};
  const StagePartition by_time = cutter.ByTime(4);
  EXPECT_EQ(by_time, Stages({2, 3, 5, 6}));
  EXPECT_EQ(cutter.StepOf(by_time, shape, HarmonyCopies::kHidden), Nanos(2 * 40));
  const auto balanced = cutter.InBalance(shape, HarmonyCopies::kHidden);
  ASSERT_TRUE(balanced.has_value());
  EXPECT_EQ(cutter.StepOf(*balanced, shape, HarmonyCopies::kHidden), Nanos(2 * 30));
}

// Weights that come in for each of four groups weigh four times.
TEST(HarmonyCuts, BalancesByHowOftenWeightsComeIn) {
  HarmonyCutter cutter(ProfileOf({{30, 20}, {30, 20}, {60, 5}}), TwoHarmonyWorkers());
  EXPECT_EQ(cutter.InBalance({.visits = {1, 1}}, HarmonyCopies::kHidden), Stages({2, 3}));
  EXPECT_EQ(cutter.InBalance({.visits = {4, 4}}, HarmonyCopies::kHidden), Stages({1, 3}));
}

// Two layers in one block. Forward it takes 20 of compute or 5 for each time that its parameters
// come in; backward 20 or 10 for parameters and gradients, and 10 once for optimizer state.
TEST(HarmonyCuts, CountsVisitsForwardAndBackwardApart) {
  ModelProfile profile = ProfileOf({{10, 3}, {10, 2}});
  for (LayerProfile& layer : profile.layers) {
    layer.gradients = layer.parameters;
    layer.optimizer_state = layer.parameters * 2;
  }
  const HarmonyCutter cutter(profile, {.count = 1, .from_host = kByteANano});
  const auto step = [&](const HarmonyVisits& visits) {
    return cutter.StepOf(Stages({2}), {.visits = visits}, HarmonyCopies::kHidden);
  };
  EXPECT_EQ(step({.forward = 1, .backward = 1}), Nanos(20 + 20));
  EXPECT_EQ(step({.forward = 8, .backward = 1}), Nanos(40 + 20));
  EXPECT_EQ(step({.forward = 1, .backward = 8}), Nanos(20 + 90));
  EXPECT_EQ(step({.forward = 8, .backward = 8}), Nanos(40 + 90));
}

TEST(HarmonyCuts, GivesNoStageMoreThanItsRoom) {
  const ModelProfile profile = ProfileOf({{10, 20}, {10, 20}, {10, 20}, {90, 20}});
  HarmonyWorkers workers = TwoHarmonyWorkers();
  EXPECT_EQ(HarmonyCutter(profile, workers).InBalance({}, HarmonyCopies::kHidden), Stages({3, 4}));
  workers.room = Bytes(40);
  EXPECT_EQ(HarmonyCutter(profile, workers).InBalance({}, HarmonyCopies::kHidden), Stages({2, 4}));
  workers.room = Bytes(39);
  EXPECT_EQ(HarmonyCutter(profile, workers).InBalance({}, HarmonyCopies::kHidden), std::nullopt);
}

TEST(HarmonyCuts, HaveALayerForEachStage) {
  HarmonyCutter cutter(ProfileOf({{1, 1}, {1, 1}, {1, 1}}), TwoHarmonyWorkers());
  EXPECT_EQ(cutter.InBalance({.rounds = 2}, HarmonyCopies::kHidden), std::nullopt);
  EXPECT_EQ(cutter.InBalance({.block = 2}, HarmonyCopies::kHidden), std::nullopt);
}

TEST(HarmonyCuts, DevicesBehindASwitchShareItsRate) {
  const Topology topology = WithHost(UniformTopology(4, kByteANano, Nanos(0)), 2,
                                     {.to_host = BytesPerSecond(80),
                                      .from_host = BytesPerSecond(100),
                                      .from_host_both = BytesPerSecond(90)});
  const HarmonyWorkers workers = WorkersThatShare(topology, {}, 3);
  EXPECT_EQ(workers.to_host, BytesPerSecond(40));
  EXPECT_EQ(workers.from_host, BytesPerSecond(45));
  EXPECT_EQ(WorkersThatShare({}, BytesPerSecond(90), 3).to_host, BytesPerSecond(30));
}

class RandomCuts {
 public:
  explicit RandomCuts(unsigned seed) : random_(seed) {}

  int Roll(int most) { return std::uniform_int_distribution<int>(1, most)(random_); }
  ModelProfile Profile(int layers) {
    ModelProfile profile;
    for (int layer = 0; layer < layers; ++layer) {
      profile.layers.push_back({.forward = Nanos(Roll(100)),
                                .input_backward = Nanos(Roll(100)),
                                .weight_backward = Nanos(Roll(100)),
                                .parameters = Bytes(Roll(100)),
                                .gradients = Bytes(Roll(100)),
                                .optimizer_state = Bytes(Roll(400))});
    }
    return profile;
  }
  HarmonyWorkers Workers(int count) {
    return {.count = count,
            .microbatches = Roll(4),
            .to_host = BytesPerSecond(500'000'000LL * Roll(6)),
            .from_host = BytesPerSecond(500'000'000LL * Roll(6))};
  }

 private:
  std::mt19937 random_;
};

Bytes WeightsOf(const ModelProfile& profile, const StageRange& stage) {
  Bytes bytes;
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    const LayerProfile& costs = profile.layers[static_cast<size_t>(layer)];
    bytes += costs.parameters + costs.gradients + costs.optimizer_state;
  }
  return bytes;
}

TEST(HarmonyCuts, AreNeverLongerThanCutsByTimeOrByBytes) {
  RandomCuts random(1);
  for (int instance = 0; instance < 200; ++instance) {
    SCOPED_TRACE(instance);
    const HarmonyCutShape shape{.rounds = random.Roll(3),
                                .block = random.Roll(3),
                                .visits = {random.Roll(4), random.Roll(4)}};
    const int count = 1 + random.Roll(3);
    const int stages = count * shape.rounds * shape.block;
    const ModelProfile profile = random.Profile(stages + random.Roll(12) - 1);
    HarmonyWorkers workers = random.Workers(count);
    HarmonyCutter cutter(profile, workers);
    for (const HarmonyCopies copies : kBoth) {
      const auto balanced = cutter.InBalance(shape, copies);
      ASSERT_TRUE(balanced.has_value());
      ASSERT_EQ(balanced->stages.size(), static_cast<size_t>(stages));
      int next = 0;
      for (const StageRange& stage : balanced->stages) {
        EXPECT_EQ(stage.begin, next);
        EXPECT_GT(stage.end, stage.begin);
        next = stage.end;
      }
      EXPECT_EQ(next, static_cast<int>(profile.layers.size()));
      const Nanos step = cutter.StepOf(*balanced, shape, copies);
      EXPECT_LE(step, cutter.StepOf(cutter.ByTime(stages), shape, copies));
      EXPECT_LE(step, cutter.StepOf(cutter.ByBytes(stages), shape, copies));
      // Within the room that its own largest stage takes, too.
      workers.room = Bytes(0);
      for (const StageRange& stage : balanced->stages) {
        workers.room = std::max(workers.room, WeightsOf(profile, stage) + Bytes(random.Roll(9)));
      }
      const auto within = HarmonyCutter(profile, workers).InBalance(shape, copies);
      if (shape.block == 1) {
        ASSERT_TRUE(within.has_value());
        EXPECT_EQ(cutter.StepOf(*within, shape, copies), step);
      }
      if (!within) continue;
      for (const StageRange& stage : within->stages) {
        EXPECT_LE(WeightsOf(profile, stage), workers.room);
      }
    }
  }
}

// Every cut of `layers` into `stages`.
void ForEachCut(int layers, int stages, std::vector<int> ends,
                const std::function<void(const StagePartition&)>& visit) {
  if (static_cast<int>(ends.size()) + 1 == stages) {
    ends.push_back(layers);
    visit(Stages(ends));
    return;
  }
  const int begin = ends.empty() ? 0 : ends.back();
  for (int end = begin + 1; end < layers; ++end) {
    if (layers - end < stages - static_cast<int>(ends.size()) - 1) break;
    std::vector<int> longer = ends;
    longer.push_back(end);
    ForEachCut(layers, stages, longer, visit);
  }
}

TEST(HarmonyCuts, AreTheBestOfAll) {
  RandomCuts random(2);
  for (int instance = 0; instance < 60; ++instance) {
    SCOPED_TRACE(instance);
    const HarmonyCutShape shape{.rounds = random.Roll(2),
                                .visits = {random.Roll(3), random.Roll(3)}};
    const int stages = 2 * shape.rounds;
    const int layers = stages + random.Roll(5);
    const ModelProfile profile = random.Profile(layers);
    HarmonyWorkers workers = random.Workers(2);
    workers.room = Bytes(600 + 100 * random.Roll(12));
    HarmonyCutter cutter(profile, workers);
    for (const HarmonyCopies copies : kBoth) {
      std::optional<Nanos> best;
      ForEachCut(layers, stages, {}, [&](const StagePartition& cut) {
        const bool fits = std::all_of(
            cut.stages.begin(), cut.stages.end(),
            [&](const StageRange& stage) { return WeightsOf(profile, stage) <= workers.room; });
        if (!fits) return;
        const Nanos step = cutter.StepOf(cut, shape, copies);
        best = best ? std::min(*best, step) : step;
      });
      const auto balanced = cutter.InBalance(shape, copies);
      ASSERT_EQ(balanced.has_value(), best.has_value());
      if (best) {
        EXPECT_EQ(cutter.StepOf(*balanced, shape, copies), *best);
      }
    }
  }
}

}  // namespace
}  // namespace siphon
