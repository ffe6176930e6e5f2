#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "tests/planner/dice.h"
#include "tests/planner/random_host.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

constexpr int kSeeds = 60;

Topology RandomTopology(int devices, Dice& dice) {
  Topology topology =
      dice.Roll(0, 1) == 0
          ? UniformTopology(devices, BytesPerSecond(dice.Roll(1, 9) * 1'000'000'000LL),
                            Nanos(dice.Roll(0, 5)))
          : NvswitchTopology(devices, BytesPerSecond(dice.Roll(1, 9) * 1'000'000'000LL),
                             Nanos(dice.Roll(0, 5)));
  // Some pairs can only go through the host.
  std::erase_if(topology.links, [&](const TopologyLink&) { return dice.Roll(0, 4) == 0; });
  return WithRandomHost(topology, dice.Roll(2, 9) * 1'000'000'000LL, dice);
}

// Swaps out some of the activations behind their F, and in again before their B or I.
void AddSwaps(Schedule& schedule, Dice& dice) {
  for (std::vector<Action>& program : schedule.programs) {
    std::vector<Action> swapped;
    std::map<std::pair<int, int>, bool> away;
    for (const Action& action : program) {
      const std::pair<int, int> key{action.stage.value, action.microbatch.value};
      const auto add = [&](ActionKind kind) {
        swapped.push_back({action.stage, kind, action.microbatch});
      };
      const bool used =
          action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
      if (used && away[key]) {
        add(ActionKind::kSwapIn);
        add(ActionKind::kSwapInEnd);
      }
      swapped.push_back(action);
      if (action.kind != ActionKind::kForward || action.pairing == Pairing::kWithNext) continue;
      away[key] = dice.Roll(0, 3) == 0;
      if (!away[key]) continue;
      add(ActionKind::kSwapOut);
      add(ActionKind::kSwapOutEnd);
    }
    program = std::move(swapped);
  }
}

// A schedule without compound cells, whose swaps would stand inside a cell.
SimulationInput RandomInput(int seed) {
  Dice dice(seed);
  constexpr const char* kNames[] = {"gpipe",      "1f1b",  "interleaved_1f1b",
                                    "looped_bfs", "zb_h1", "interleaved_zero_bubble",
                                    "zbv",        "zb_h2"};
  const std::string name = kNames[dice.Roll(0, 7)];
  const int workers = dice.Roll(1, 5);
  Schedule schedule = BuildSchedule(name, {.workers = workers,
                                           .chunks = FindSchedule(name)->chunks,
                                           .microbatches = workers * dice.Roll(2, 3)})
                          .value();
  const bool lowered = dice.Roll(0, 1) == 0;
  if (lowered) schedule = InsertCommunication(schedule).value();
  if (dice.Roll(0, 1) == 0) AddSwaps(schedule, dice);
  if (lowered) schedule = AppendOptimizerStep(schedule, {});
  SimulationInput input{.schedule = schedule};
  for (size_t stage = 0; stage < schedule.worker_of_stage.size(); ++stage) {
    input.stages.push_back({.forward = Nanos(dice.Roll(0, 20)),
                            .input_backward = Nanos(dice.Roll(0, 20)),
                            .weight_backward = Nanos(dice.Roll(0, 20)),
                            .step = Nanos(dice.Roll(0, 9)),
                            .parameters = Bytes(dice.Roll(0, 99)),
                            .stash = Bytes(dice.Roll(0, 99)),
                            .kept_for_weights = Bytes(dice.Roll(0, 120)),
                            .input = stage == 0 ? Bytes(0) : input.stages.back().output,
                            .output = Bytes(dice.Roll(0, 50)),
                            .forward_workspace = Bytes(dice.Roll(0, 9)),
                            .backward_workspace = Bytes(dice.Roll(0, 9))});
  }
  input.stages.back().output = Bytes(0);
  if (dice.Roll(0, 3) > 0) input.topology = RandomTopology(workers, dice);
  input.transport = {.latency = Nanos(dice.Roll(0, 5)),
                     .rate = BytesPerSecond(dice.Roll(0, 3) * 1'000'000'000LL)};
  return input;
}

void ExpectInOrder(const WorkerTimeline& timeline) {
  for (size_t place = 0; place < timeline.size(); ++place) {
    EXPECT_LT(timeline[place].begin, timeline[place].end);
    if (place > 0) {
      EXPECT_LE(timeline[place - 1].end, timeline[place].begin);
    }
  }
}

TEST(SimulatedProperties, NothingOverlapsOnAnyLane) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulatedStep step = Simulated(RandomInput(seed));
    for (const WorkerTimeline& timeline : step.workers) ExpectInOrder(timeline);
    for (const LaneTimeline& lane : step.lanes) ExpectInOrder(lane.intervals);
  }
}

// Begin and end of each compute action that takes time.
std::map<std::string, Interval> IntervalsOf(const SimulatedStep& step) {
  std::map<std::string, Interval> intervals;
  for (const WorkerTimeline& timeline : step.workers) {
    for (const Interval& interval : timeline) {
      if (interval.kind == IntervalKind::kBusy) intervals[ToString(interval.action)] = interval;
    }
  }
  return intervals;
}

void ExpectDependenciesRespected(const SimulationInput& input, const SimulatedStep& step) {
  const std::map<std::string, Interval> intervals = IntervalsOf(step);
  const auto expect_after = [&](const std::string& later, const std::string& earlier) {
    const auto first = intervals.find(earlier);
    const auto second = intervals.find(later);
    if (first == intervals.end() || second == intervals.end()) return;
    EXPECT_GE(second->second.begin, first->second.end) << later << " before " << earlier;
  };
  for (int stage = 0; stage < StageCount(input.schedule); ++stage) {
    for (int microbatch = 0; microbatch < input.schedule.microbatches; ++microbatch) {
      const auto name = [&](int of_stage, const char* kind) {
        return absl::StrCat(of_stage, kind, microbatch);
      };
      expect_after(name(stage + 1, "F"), name(stage, "F"));
      for (const char* kind : {"B", "I"}) {
        expect_after(name(stage, kind), name(stage, "F"));
        for (const char* next : {"B", "I"}) expect_after(name(stage, kind), name(stage + 1, next));
      }
      expect_after(name(stage, "W"), name(stage, "I"));
    }
  }
}

TEST(SimulatedProperties, NothingBeginsBeforeWhatItNeedsHasEnded) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulationInput input = RandomInput(seed);
    ExpectDependenciesRespected(input, Simulated(input));
  }
}

TEST(SimulatedProperties, FasterLinksLeadNothingToBeginTooEarly) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimulationInput input = RandomInput(seed);
    for (TopologyLink& link : input.topology.links) link.rate.value *= 1000;
    for (TopologyDevice& device : input.topology.devices) device.egress = device.ingress = {};
    input.transport.rate = BytesPerSecond(0);
    ExpectDependenciesRespected(input, Simulated(input));
  }
}

// What a worker has of a kind from that time on.
Bytes HeldAt(const MemoryCurve& curve, Nanos time, MemoryKind kind) {
  Bytes held;
  for (const MemoryPoint& point : curve) {
    if (point.time <= time) held = point.bytes[kind];
  }
  return held;
}

TEST(SimulatedProperties, WhatMayHaveToBeHeldIsNeverLessThanWhatIs) {
  constexpr MemoryKind kKind = MemoryKind::kBoundary;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    SimulationInput input = RandomInput(seed);
    const SimulatedStep by_time = Simulated(input);
    input.transport.sent = SentMemory::kUntilTaken;
    const SimulatedStep taken = Simulated(input);
    EXPECT_EQ(taken.step_time, by_time.step_time);
    for (size_t worker = 0; worker < taken.memory.size(); ++worker) {
      const MemoryCurve& curve = taken.memory[worker];
      EXPECT_EQ(curve.back().bytes[kKind], Bytes(0));
      const WorkerTimeline& timeline = by_time.workers[worker];
      const Nanos end = timeline.empty() ? Nanos(0) : timeline.back().end;
      for (const MemoryPoint& point : by_time.memory[worker]) {
        if (point.time >= end) break;  // nothing but messages is left
        EXPECT_GE(HeldAt(curve, point.time, kKind), point.bytes[kKind]) << point.time.value;
      }
    }
    input.transport.room = 2;
    const SimulatedStep buffered = Simulated(input);
    for (const MemoryCurve& curve : buffered.memory) {
      EXPECT_EQ(curve.back().bytes[kKind], Bytes(0));
    }
  }
}

TEST(SimulatedProperties, WorkIsDoneAndBytesMoveExactlyOnce) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulationInput input = RandomInput(seed);
    const SimulatedStep step = Simulated(input);
    int64_t work = 0;
    int64_t sent = 0;
    const Schedule& schedule = input.schedule;
    int64_t swapped = 0;
    for (const std::vector<Action>& program : schedule.programs) {
      for (const Action& action : program) {
        if (action.kind == ActionKind::kStep) work += input.stages[action.stage.value].step.value;
        if (action.kind == ActionKind::kSwapOut) {
          swapped += input.stages[action.stage.value].stash.value;
        }
      }
    }
    for (int stage = 0; stage < StageCount(schedule); ++stage) {
      const StageCost& cost = input.stages[stage];
      work +=
          (cost.forward + cost.input_backward + cost.weight_backward).value * schedule.microbatches;
      if (stage > 0 && schedule.worker_of_stage[stage] != schedule.worker_of_stage[stage - 1]) {
        sent += 2 * cost.input.value * schedule.microbatches;
      }
    }
    int64_t busy = 0;
    for (const WorkerTimeline& timeline : step.workers) {
      for (const Interval& interval : timeline) {
        if (interval.kind == IntervalKind::kBusy) busy += (interval.end - interval.begin).value;
      }
    }
    int64_t moved = 0;  // by channels and copy engines, not counted again where they pass
    for (const LaneTimeline& lane : step.lanes) {
      if (lane.name.find(", ") != std::string::npos) moved += lane.bytes.value;
    }
    EXPECT_EQ(busy, work) << seed;
    EXPECT_EQ(moved, sent + 2 * swapped) << seed;
  }
}

TEST(SimulatedProperties, AtTheEndOnlyWhatIsHeldAnywayIsLeft) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulationInput input = RandomInput(seed);
    const SimulatedStep step = Simulated(input);
    std::vector<Bytes> parameters(input.schedule.programs.size());
    for (size_t stage = 0; stage < input.stages.size(); ++stage) {
      parameters[input.schedule.worker_of_stage[stage].value] += input.stages[stage].parameters;
    }
    for (size_t worker = 0; worker < step.memory.size(); ++worker) {
      const MemoryByKind& left = step.memory[worker].back().bytes;
      EXPECT_EQ(left[MemoryKind::kParameters], parameters[worker]);
      EXPECT_EQ(Total(left), parameters[worker]) << seed << "\n" << CurveText(step.memory[worker]);
      for (const MemoryPoint& point : step.memory[worker]) {
        for (const Bytes bytes : point.bytes.bytes) EXPECT_GE(bytes, Bytes(0));
        EXPECT_LE(Total(point.bytes), Total(step.peak[worker]));
      }
    }
  }
}

TEST(SimulatedProperties, ACapacityOfExactlyThePeakIsEnough) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimulationInput input = RandomInput(seed);
    const SimulatedStep step = Simulated(input);
    input.capacity = TotalPeaks(step);
    EXPECT_EQ(Simulated(input), step);
    const auto tight = std::max_element(input.capacity.begin(), input.capacity.end());
    if (*tight <= Bytes(1)) continue;
    *tight -= Bytes(1);
    EXPECT_EQ(Simulate(input).status().code(), absl::StatusCode::kResourceExhausted) << seed;
  }
}

TEST(SimulatedProperties, TheSameInputGivesTheSameStep) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(Simulated(RandomInput(seed)), Simulated(RandomInput(seed)));
  }
}

TEST(SimulatedProperties, WaitsAndWorkFillTheLaneUpToItsLastAction) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulatedStep step = Simulated(RandomInput(seed));
    for (size_t worker = 0; worker < step.workers.size(); ++worker) {
      Nanos filled;
      Nanos waited;
      for (const Interval& interval : step.workers[worker]) {
        EXPECT_EQ(interval.begin, filled) << seed;
        filled = interval.end;
        if (interval.kind == IntervalKind::kWait) waited += interval.end - interval.begin;
      }
      Nanos causes;
      for (const Nanos wait : step.exposed_waits[worker]) causes += wait;
      EXPECT_EQ(causes, waited) << seed;
    }
  }
}

TEST(SimulatedProperties, ALoweredScheduleTakesAsLongAsItsComputeActions) {
  // With free messages, and buffers that are posted in time. (A compound cell sends only behind
  // both of its actions, so that dualpipev takes longer.)
  for (const char* name : {"gpipe", "1f1b", "interleaved_1f1b", "zbv", "zb_h1"}) {
    const Schedule schedule =
        BuildSchedule(name, {.workers = 4, .chunks = FindSchedule(name)->chunks, .microbatches = 8})
            .value();
    const SimulatedStep plain = Simulated(UnitStages(schedule));
    const SimulatedStep lowered = Simulated(UnitStages(InsertCommunication(schedule).value()));
    EXPECT_EQ(TimelineText(lowered), TimelineText(plain)) << name;
  }
}

TEST(SimulatedProperties, EveryScheduleOfTheRegistryRuns) {
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    for (const ScheduleShape& shape :
         {ScheduleShape{.workers = 4, .chunks = entry.chunks, .microbatches = 8},
          ScheduleShape{.workers = 1, .chunks = entry.chunks, .microbatches = 8}}) {
      const absl::StatusOr<Schedule> schedule = BuildSchedule(entry.name, shape);
      if (!schedule.ok()) continue;  // not a shape, or not without options, that it takes
      const SimulatedStep step = Simulated(UnitStages(*schedule));
      EXPECT_GT(step.step_time, Nanos(0)) << entry.name;
    }
  }
}

TEST(SimulatedProperties, AsynchronousSchedulesHoldTheWeightVersionsThatTheyNeed) {
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    if (entry.update != WeightUpdate::kAsynchronous) continue;
    const Schedule schedule =
        BuildSchedule(entry.name, {.workers = 4, .chunks = entry.chunks, .microbatches = 12})
            .value();
    const std::vector<int> versions = PeakWeightVersions(schedule);
    StageCost cost = TenNanos();
    cost.parameters = Bytes(1);
    const SimulatedStep step = Simulated(EqualStages(schedule, cost));
    for (size_t stage = 0; stage < versions.size(); ++stage) {
      Bytes most;
      const int worker = schedule.worker_of_stage[stage].value;
      for (const MemoryPoint& point : step.memory[worker]) {
        most = std::max(most, point.bytes[MemoryKind::kWeightVersions]);
      }
      EXPECT_EQ(most.value, versions[stage] - 1) << entry.name << " " << stage;
    }
  }
}

}  // namespace
}  // namespace siphon
