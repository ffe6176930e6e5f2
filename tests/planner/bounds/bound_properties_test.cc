#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "planner/simulator/simulate.h"
#include "tests/planner/bounds/bounds_testing.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

constexpr int kSeeds = kSanitized ? 20 : 60;

// Any device for each worker.
DeviceMapping RandomMapping(int workers, int devices, Dice& dice) {
  DeviceMapping mapping = IdentityMapping(std::max(workers, devices));
  for (size_t place = mapping.device_of_worker.size(); place > 1; --place) {
    std::swap(mapping.device_of_worker[place - 1],
              mapping.device_of_worker[dice.Roll(0, static_cast<int>(place) - 1)]);
  }
  mapping.device_of_worker.resize(workers);
  return mapping;
}

bool HasSteps(const Schedule& schedule) {
  for (const Action& action : schedule.programs[0]) {
    if (action.kind == ActionKind::kStep) return true;
  }
  return false;
}

// A way that is open to the group.
GroupChoice RandomChoice(const PlanningProblem& problem, const TensorGroup& group,
                         Placement placement, DeviceId own, Dice& dice) {
  std::vector<DeviceId> lenders;
  for (const TopologyLink& link : problem.topology.links) {
    const bool back = FindLink(problem.topology, link.to, own).has_value();
    if (link.from == own && back) lenders.push_back(link.to);
  }
  const bool activations = group.kind == GroupKind::kActivations;
  if (placement == Placement::kRecompute && !activations) placement = Placement::kHostSwap;
  const bool can_lend = !lenders.empty() && group.bytes > Bytes(0);
  if (placement == Placement::kPeerSwap && !can_lend) placement = Placement::kHostSwap;
  GroupChoice choice{.placement = placement};
  if (placement == Placement::kPeerSwap) {
    const int lender = dice.Roll(0, static_cast<int>(lenders.size()) - 1);
    choice.stripes = {{.lender = lenders[static_cast<size_t>(lender)], .bytes = group.bytes}};
  }
  return choice;
}

// Of some layers only what they save first, by how much that is.
void TakeFirstTensors(const ModelProfile& profile, TensorGroup& group) {
  const int layer = group.layers.begin;
  const std::vector<int> counts = FirstTensorsOf(profile.layers[layer]);
  if (group.layers.end != layer + 1 || counts.empty() || group.bytes.value % 2 == 0) return;
  const auto place = static_cast<size_t>(group.bytes.value / 2) % counts.size();
  const TensorGroup first = FirstTensorsGroup(profile, layer, counts[place]);
  if (first.bytes < group.bytes) group = first;
}

// Most activations of a stage go one way, the others any; of other kinds some go. Where the host
// steps, it does so for some layers.
MemoryPlan RandomPlan(const PlanningProblem& problem, const DeviceMapping& mapping, Dice& dice) {
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const DeviceId own = mapping.device_of_worker[problem.schedule.worker_of_stage[stage].value];
    const auto most = static_cast<Placement>(dice.Roll(1, 3));
    const bool moves_others = HasSteps(problem.schedule) && dice.Roll(0, 1) == 0;
    for (auto& [group, choice] : plan.stages[stage].groups) {
      if (group.kind != GroupKind::kActivations && !moves_others) continue;
      const Placement placement =
          dice.Roll(0, 3) > 0 ? most : static_cast<Placement>(dice.Roll(0, 3));
      if (group.kind == GroupKind::kActivations) TakeFirstTensors(problem.profile, group);
      choice = RandomChoice(problem, group, placement, own, dice);
    }
    if (!moves_others || problem.host_step == Nanos(0) || dice.Roll(0, 1) == 0) continue;
    plan.stages[stage].update = UpdatePlace::kHost;
    for (auto& [group, choice] : plan.stages[stage].groups) {
      if (group.kind != GroupKind::kOptimizerState) continue;
      const int here = dice.Roll(0, 3);
      if (here == 0) choice = {};
      if (here > 1) choice = {.placement = Placement::kHostSwap, .steps_on_device = here > 2};
    }
  }
  return plan;
}

Bytes LargestOf(const SimulatedStep& step) {
  Bytes largest;
  for (const MemoryByKind& peak : step.peak) largest = std::max(largest, Total(peak));
  return largest;
}

// Stashed weight versions, each layer's one way or another.
void AddVersions(const PlanningProblem& problem, const DeviceMapping& mapping, MemoryPlan& plan,
                 Dice& dice) {
  const std::vector<int> versions = PeakWeightVersions(problem.schedule);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (versions[stage] == 1) continue;
    const DeviceId own = mapping.device_of_worker[problem.schedule.worker_of_stage[stage].value];
    const StageRange& layers = problem.partition.stages[stage];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      const TensorGroup group =
          GroupOf(problem.profile, layers, GroupKind::kWeightVersions, {layer, layer + 1});
      if (group.bytes == Bytes(0)) continue;
      const auto placement = static_cast<Placement>(dice.Roll(1, 3));
      plan.stages[stage].groups.push_back(
          {group, RandomChoice(problem, group, placement, own, dice)});
    }
  }
}

RandomStep MakeStep(PlanningProblem random, Dice& dice) {
  RandomStep made{.problem = std::move(random)};
  PlanningProblem& problem = made.problem;
  const int workers = WorkerCount(problem.schedule);
  made.mapping = RandomMapping(workers, DeviceCount(problem.topology), dice);
  const WeightResidence weights =
      dice.Roll(0, 1) == 0 ? WeightResidence::kWholeActions : WeightResidence::kLayerByLayer;
  MemoryPlan plan = RandomPlan(problem, made.mapping, dice);
  AddVersions(problem, made.mapping, plan, dice);
  for (StagePlan& stage : plan.stages) stage.stream_buffers = dice.Roll(1, kMostStreamBuffers);
  SwapTiming timing{.forwards_to_leave = dice.Roll(1, 3),
                    .actions_to_come_back = dice.Roll(0, 2),
                    .groups_away_between_steps = dice.Roll(0, 3),
                    .home_beside_host = dice.Roll(0, 1) == 0,
                    .forwards_to_leave_home = dice.Roll(1, 3),
                    .actions_to_come_home = dice.Roll(0, 3),
                    .gradients_ahead = dice.Roll(0, 2)};
  const DirectBackward direct =
      dice.Roll(0, 1) == 0 ? DirectBackward::kDrop : DirectBackward::kLeave;
  const StateTimes times{.gone = {dice.Roll(0, 2), dice.Roll(1, 5)},
                         .back = {dice.Roll(0, 8), dice.Roll(0, 4)},
                         .in = {dice.Roll(0, 6), dice.Roll(0, 3)}};
  std::vector<int> made_ahead;
  std::vector<int> shares;
  for (size_t layer = 0; layer < problem.profile.layers.size(); ++layer) {
    made_ahead.push_back(dice.Roll(0, 3) - 1);
    shares.push_back(dice.Roll(0, 1) == 0 ? LowerMemoryOptions::kShares : dice.Roll(1, 7));
  }
  const bool timed = dice.Roll(0, 1) == 0;
  // Otherwise so little leaves in most that a bound would have nothing to say.
  if (dice.Roll(0, 3) > 0) shares.clear();
  if (dice.Roll(0, 1) == 0) timing.turn = SwapTiming::Turn::kFirstStay;
  if (dice.Roll(0, 1) == 0) {
    timing.groups_out_behind = dice.Roll(0, 2);
    timing.groups_in_before = dice.Roll(0, 2);
  }
  const Schedule lowered =
      LowerMemoryPlan(
          problem.schedule, plan,
          {.timing = std::vector<SwapTiming>(plan.stages.size(), timing),
           .direct = std::vector<DirectBackward>(plan.stages.size(), direct),
           .weights = std::vector<WeightResidence>(plan.stages.size(), weights),
           .state_times = std::vector<StateTimes>(timed ? plan.stages.size() : 0, times),
           .made_ahead = made_ahead,
           .shares = shares})
          .value();
  const SimulatedStep step = Simulate(SimulationOf(problem, made.mapping, plan, lowered)).value();
  const SimulatedStep kept =
      Simulate(SimulationOf(problem, made.mapping, {}, problem.schedule)).value();
  problem.capacity = TotalPeaks(step);
  made.step_time = step.step_time;
  made.saved = LargestOf(kept) - LargestOf(step);
  return made;
}

RandomStep MakeStep(int seed) {
  Dice dice(seed);
  PlanningProblem problem = RandomProblem(dice);
  return MakeStep(std::move(problem), dice);
}

// PipeDream, whose weight versions go somewhere, too; nothing where a worker has several stages.
std::optional<RandomStep> MakeAsynchronousStep(int seed) {
  Dice dice(seed);
  PlanningProblem problem = RandomProblem(dice);
  const int workers = WorkerCount(problem.schedule);
  if (workers < 2 || StageCount(problem.schedule) != workers) return std::nullopt;
  problem.schedule =
      ScheduleOf(dice.Roll(0, 3) > 0 ? "pipedream" : "pipedream_2bw", workers, 3 * workers);
  return MakeStep(std::move(problem), dice);
}

TEST(LowerBoundProperties, NoPlanWithWeightVersionsElsewhereIsFasterThanItsBound) {
  int steps = 0;
  int saving = 0;
  for (int seed = 0; steps < kSeeds / 2; ++seed) {
    ASSERT_LT(seed, 4 * kSeeds) << "hardly any problem has stashed weight versions";
    std::optional<RandomStep> made = MakeAsynchronousStep(seed);
    if (!made.has_value()) continue;
    ++steps;
    saving += made->saved > Bytes(0) ? 1 : 0;
    ExpectAboveItsBounds(*std::move(made), seed);
  }
  // The bounds have something to say.
  EXPECT_GT(saving, kSeeds / 8);
}

TEST(LowerBoundProperties, NoPlanIsFasterThanItsBound) {
  int saving = 0;
  int above_compute = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    RandomStep made = MakeStep(seed);
    saving += made.saved > Bytes(0) ? 1 : 0;
    for (const bool mapped : {false, true}) {
      if (mapped) made.problem.mapping = made.mapping;
      const LowerBound bound = BoundOf(made.problem);
      EXPECT_EQ(bound.cannot_fit, std::nullopt) << seed;
      for (const BoundPart& part : bound.parts) {
        EXPECT_LE(*part.time, made.step_time) << seed << " " << part.reason;
      }
      above_compute += bound.step_time > *bound.parts[0].time ? 1 : 0;
    }
  }
  // The bounds have something to say.
  EXPECT_GT(saving, kSeeds / 4);
  EXPECT_GT(above_compute, kSeeds / 8);
}

TEST(LowerBoundProperties, NoPlanOnSeveralServersIsFasterThanItsBound) {
  int host_steps = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Dice dice(seed);
    PlanningProblem problem = OnServers(RandomProblem(dice), dice);
    RandomStep made = MakeStep(std::move(problem), dice);
    host_steps += made.problem.host_step > Nanos(0) ? 1 : 0;
    ExpectAboveItsBounds(std::move(made), seed);
  }
  EXPECT_GT(host_steps, kSeeds / 4);
}

// Workers of one machine, whose copies take cores, too.
TEST(LowerBoundProperties, NoPlanOnSharedCoresIsFasterThanItsBound) {
  int shared = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Dice dice(seed);
    PlanningProblem problem = RandomProblem(dice);
    const PlanningProblem alone = problem;
    Dice cores(seed + kSeeds);
    problem.cores = {1'000, cores.Roll(1'000, 2'000)};
    problem.transport.swap_rate = BytesPerSecond(cores.Roll(0, 2) * 400'000'000LL);
    const RandomStep made = MakeStep(std::move(problem), dice);
    const LowerBound bound = BoundOf(made.problem);
    for (const BoundPart& part : bound.parts) {
      EXPECT_LE(*part.time, made.step_time) << seed << " " << part.reason;
    }
    Dice again(seed);
    RandomProblem(again);
    shared += made.step_time > MakeStep(alone, again).step_time ? 1 : 0;
  }
  EXPECT_GT(shared, kSeeds / 2) << "sharing cores takes time";
}

TEST(LowerBoundProperties, ABoundOfAMapIsAtLeastThatOfAll) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    RandomStep made = MakeStep(seed);
    const Nanos any = BoundOf(made.problem).step_time;
    made.problem.mapping = made.mapping;
    EXPECT_GE(BoundOf(made.problem).step_time, any) << seed;
  }
}

void ExpectNoPartIsLarger(const LowerBound& smaller, const LowerBound& larger, int seed) {
  EXPECT_LE(smaller.step_time, larger.step_time) << seed;
  for (const BoundPart& part : larger.parts) {
    for (const BoundPart& other : smaller.parts) {
      const bool program = part.reason.rfind("linear program", 0) == 0 &&
                           other.reason.rfind("linear program", 0) == 0;
      if (!program && part.reason != other.reason) continue;
      EXPECT_LE(*other.time, *part.time) << seed << " " << part.reason;
    }
  }
}

TEST(LowerBoundProperties, MoreMemoryNeverMakesItLarger) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    RandomStep made = MakeStep(seed);
    LowerBound before = BoundOf(made.problem);
    Dice dice(seed);
    for (int round = 0; round < 3; ++round) {
      made.problem.capacity[dice.Roll(0, static_cast<int>(made.problem.capacity.size()) - 1)] +=
          Bytes(dice.Roll(1, 4'000));
      const LowerBound after = BoundOf(made.problem);
      ExpectNoPartIsLarger(after, before, seed);
      before = after;
    }
  }
}

TEST(LowerBoundProperties, FasterLinksNeverMakeItLarger) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    RandomStep made = MakeStep(seed);
    const LowerBound before = BoundOf(made.problem);
    Dice dice(seed);
    const auto raise = [&](BytesPerSecond& rate) {
      rate.value += rate.value * dice.Roll(0, 9) / 8;
    };
    for (TopologyLink& link : made.problem.topology.links) raise(link.rate);
    for (TopologyDevice& device : made.problem.topology.devices) {
      raise(device.egress);
      raise(device.ingress);
    }
    for (PcieSwitch& uplink : made.problem.topology.switches) {
      raise(uplink.to_host);
      raise(uplink.from_host);
      raise(uplink.to_host_both);
      raise(uplink.from_host_both);
    }
    raise(made.problem.transport.host_rate);
    ExpectNoPartIsLarger(BoundOf(made.problem), before, seed);
  }
}

TEST(LowerBoundProperties, OtherNumbersOfDevicesChangeNothing) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    RandomStep made = MakeStep(seed);
    PlanningProblem renumbered = made.problem;
    Topology& topology = renumbered.topology;
    Dice dice(seed);
    const DeviceMapping now = RandomMapping(DeviceCount(topology), DeviceCount(topology), dice);
    const auto renumber = [&](DeviceId& device) { device = now.device_of_worker[device.value]; };
    for (size_t device = 0; device < topology.devices.size(); ++device) {
      topology.devices[now.device_of_worker[device].value] = made.problem.topology.devices[device];
    }
    for (TopologyLink& link : topology.links) renumber(link.from), renumber(link.to);
    std::reverse(topology.links.begin(), topology.links.end());
    for (PcieSwitch& uplink : topology.switches) {
      for (DeviceId& device : uplink.devices) renumber(device);
    }
    EXPECT_EQ(BoundOf(renumbered).step_time, BoundOf(made.problem).step_time) << seed;
    if (topology.devices.empty()) continue;
    renumbered.mapping = made.problem.mapping = made.mapping;
    for (DeviceId& device : renumbered.mapping->device_of_worker) renumber(device);
    EXPECT_EQ(BoundOf(renumbered).step_time, BoundOf(made.problem).step_time) << seed;
  }
}

TEST(LowerBoundProperties, TheSameProblemHasTheSameBound) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const RandomStep made = MakeStep(seed);
    EXPECT_EQ(BoundOf(made.problem), BoundOf(made.problem)) << seed;
  }
}

}  // namespace
}  // namespace siphon
