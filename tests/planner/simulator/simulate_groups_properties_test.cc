#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/steps_on_host.h"
#include "tests/planner/dice.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

constexpr int kSeeds = 40;

// One to four layers a stage, and the stage's cost that they make.
void AddLayers(SimulationInput& input, Dice& dice) {
  std::vector<LayerCost>& layers = input.layers.emplace_back();
  StageCost cost{.parameters = Bytes(dice.Roll(0, 99)),
                 .gradients = Bytes(dice.Roll(0, 99)),
                 .optimizer_state = Bytes(dice.Roll(0, 99)),
                 .input = input.stages.empty() ? Bytes(0) : input.stages.back().output,
                 .output = Bytes(dice.Roll(0, 50)),
                 .forward_workspace = Bytes(dice.Roll(0, 9)),
                 .backward_workspace = Bytes(dice.Roll(0, 9))};
  for (int layer = 0, count = dice.Roll(1, 4); layer < count; ++layer) {
    layers.push_back({.forward = Nanos(dice.Roll(0, 9)),
                      .input_backward = Nanos(dice.Roll(0, 9)),
                      .weight_backward = Nanos(dice.Roll(0, 9)),
                      .stash = Bytes(dice.Roll(0, 99)),
                      .kept_for_weights = Bytes(dice.Roll(0, 120)),
                      .optimizer = Nanos(dice.Roll(0, 9))});
    LayerCost& added = layers.back();
    if (layer > 0) added.shared_before = Bytes(dice.Roll(0, static_cast<int>(added.stash.value)));
    cost.forward += layers.back().forward;
    cost.input_backward += layers.back().input_backward;
    cost.weight_backward += layers.back().weight_backward;
    cost.step += layers.back().optimizer;
    cost.stash += layers.back().stash;
    cost.kept_for_weights += layers.back().kept_for_weights;
  }
  input.stages.push_back(cost);
}

GroupChoice RandomChoice(const TensorGroup& group, int worker, int devices, Dice& dice) {
  constexpr Placement kChoices[] = {Placement::kKeep, Placement::kPeerSwap, Placement::kHostSwap,
                                    Placement::kNvmeSwap, Placement::kRecompute};
  const int last = group.kind == GroupKind::kActivations ? 4 : 3;
  GroupChoice choice{.placement = kChoices[dice.Roll(0, last)]};
  if (choice.placement != Placement::kPeerSwap) return choice;
  std::vector<LenderWeight> weights;
  for (int device = 0; device < devices; ++device) {
    if (device != worker) weights.push_back({DeviceId(device), dice.Roll(0, 3)});
  }
  weights.back().weight += 1;
  choice.stripes = CutStripes(group.bytes, weights, Bytes(8));
  return choice;
}

// The stage's layers in runs, each a group of every kind with a choice of its own.
StagePlan RandomStagePlan(const SimulationInput& input, int stage, int first_layer, int devices,
                          Dice& dice) {
  StagePlan plan;
  if (dice.Roll(0, 3) == 0) plan.update = UpdatePlace::kHost;
  const int worker = input.schedule.worker_of_stage[stage].value;
  const StageCost& cost = input.stages[stage];
  const auto layers = static_cast<int>(input.layers[stage].size());
  for (int begin = 0, end = 0; begin < layers; begin = end) {
    end = dice.Roll(begin + 1, layers);
    TensorGroup group{.layers = {first_layer + begin, first_layer + end},
                      .input = Bytes(dice.Roll(0, 20)),
                      .recompute = Nanos(dice.Roll(0, 20))};
    for (int layer = begin; layer < end; ++layer) {
      group.bytes += input.layers[stage][layer].stash;
    }
    plan.groups.push_back({group, RandomChoice(group, worker, devices, dice)});
  }
  constexpr GroupKind kStatic[] = {GroupKind::kParameters, GroupKind::kGradients,
                                   GroupKind::kOptimizerState};
  for (const GroupKind kind : kStatic) {
    const Bytes all = kind == GroupKind::kParameters  ? cost.parameters
                      : kind == GroupKind::kGradients ? cost.gradients
                                                      : cost.optimizer_state;
    TensorGroup group{.kind = kind,
                      .layers = {first_layer, first_layer + dice.Roll(1, layers)},
                      .bytes = Bytes(dice.Roll(0, static_cast<int>(all.value)))};
    const bool stays = kind == GroupKind::kOptimizerState && plan.update == UpdatePlace::kHost;
    plan.groups.push_back({group, stays ? GroupChoice{.placement = Placement::kHostSwap}
                                        : RandomChoice(group, worker, devices, dice)});
  }
  return plan;
}

// A schedule's actions with those of a plan between them: activations leave and come back where the
// dice say, all else is in from the worker's first action to its last.
class Lowering {
 public:
  Lowering(const SimulationInput& input, Dice& dice) : input_(input), dice_(dice) {}

  std::vector<Action> Run(const std::vector<Action>& program) {
    MoveStatic(program, ActionKind::kSwapIn);
    for (const Action& action : program) {
      MoveLater();
      if (action.kind == ActionKind::kForward) Leave(action);
      if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
        ComeBack(action);
      }
      lowered_.push_back(action);
    }
    MoveStatic(program, ActionKind::kSwapOut);
    MoveStatic(program, ActionKind::kSwapOutEnd);
    return std::move(lowered_);
  }

 private:
  const std::vector<PlannedGroup>& GroupsOf(StageId stage) const {
    return input_.memory.stages[stage.value].groups;
  }
  void Add(Action action, ActionKind kind) {
    action.kind = kind;
    lowered_.push_back(action);
  }

  void MoveStatic(const std::vector<Action>& program, ActionKind kind) {
    std::map<StageId, bool> seen;
    for (const Action& action : program) seen[action.stage] = true;
    for (const auto& [stage, held] : seen) {
      for (size_t group = 0; group < GroupsOf(stage).size(); ++group) {
        const auto& [tensors, choice] = GroupsOf(stage)[group];
        if (tensors.kind == GroupKind::kActivations || !IsSwap(choice.placement)) continue;
        const StagePlan& plan = input_.memory.stages[stage.value];
        if (StepsOnHost(plan, plan.groups[group])) continue;
        lowered_.push_back(
            {stage, kind, kNoMicrobatch, Pairing::kAlone, GroupId(static_cast<int>(group))});
      }
    }
  }

  void Leave(const Action& forward) {
    for (size_t group = 0; group < GroupsOf(forward.stage).size(); ++group) {
      const auto& [tensors, choice] = GroupsOf(forward.stage)[group];
      const bool moves = tensors.kind == GroupKind::kActivations &&
                         choice.placement != Placement::kKeep && dice_.Roll(0, 3) > 0;
      if (!moves) continue;
      Action action = forward;
      action.group = GroupId(static_cast<int>(group));
      const bool drop = choice.placement == Placement::kRecompute;
      Add(action, drop ? ActionKind::kDrop : ActionKind::kSwapOut);
      if (drop) {
        dropped_.push_back(action);
      } else {
        leaving_.push_back(action);
      }
    }
  }

  // Some of the copies out that are under way end; some of what is away comes back.
  void MoveLater() {
    std::vector<Action> still_leaving;
    for (const Action& action : std::exchange(away_, {})) {
      if (dice_.Roll(0, 5) > 0) {
        away_.push_back(action);
      } else {
        Add(action, ActionKind::kSwapIn);
      }
    }
    for (const Action& action : leaving_) {
      if (dice_.Roll(0, 1) > 0 || lowered_.back().group != kWholeStage) {
        still_leaving.push_back(action);
      } else {
        Add(action, ActionKind::kSwapOutEnd);
        away_.push_back(action);
      }
    }
    leaving_ = std::move(still_leaving);
  }

  static std::vector<Action> Take(std::vector<Action>& from, const Action& backward) {
    std::vector<Action> taken;
    std::erase_if(from, [&](const Action& action) {
      const bool is_its =
          action.stage == backward.stage && action.microbatch == backward.microbatch;
      if (is_its) taken.push_back(action);
      return is_its;
    });
    return taken;
  }

  void ComeBack(const Action& backward) {
    for (const Action& action : Take(leaving_, backward)) {
      Add(action, ActionKind::kSwapOutEnd);
      away_.push_back(action);
    }
    for (const Action& action : Take(away_, backward)) {
      Add(action, ActionKind::kSwapIn);
      if (dice_.Roll(0, 2) == 0) Add(action, ActionKind::kSwapInEnd);
    }
    for (const Action& action : Take(dropped_, backward)) {
      if (dice_.Roll(0, 2) == 0) Add(action, ActionKind::kRecompute);
    }
  }

  const SimulationInput& input_;
  Dice& dice_;
  std::vector<Action> lowered_;
  std::vector<Action> leaving_;
  std::vector<Action> away_;
  std::vector<Action> dropped_;
};

Topology RandomServer(int devices, Dice& dice) {
  Topology topology = UniformTopology(devices, BytesPerSecond(dice.Roll(1, 9) * 1'000'000'000LL),
                                      Nanos(dice.Roll(0, 5)));
  if (dice.Roll(0, 1) == 0) topology.copy_engines = CopyEngines::kOneForAllPeers;
  const BytesPerSecond uplink(dice.Roll(2, 9) * 1'000'000'000LL);
  topology = WithHost(topology, dice.Roll(1, 3),
                      {.to_host = uplink, .from_host = uplink, .latency = Nanos(dice.Roll(0, 3))});
  topology.drives.resize(dice.Roll(1, 2), {.read = BytesPerSecond(3'000'000'000),
                                           .write = BytesPerSecond(2'000'000'000),
                                           .latency = Nanos(7)});
  return topology;
}

SimulationInput RandomInput(int seed) {
  Dice dice(seed);
  constexpr const char* kNames[] = {"gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zbv"};
  const std::string name = kNames[dice.Roll(0, 4)];
  const int workers = dice.Roll(1, 4);
  Schedule schedule = BuildSchedule(name, {.workers = workers,
                                           .chunks = FindSchedule(name)->chunks,
                                           .microbatches = workers * dice.Roll(2, 3)})
                          .value();
  schedule = AppendOptimizerStep(InsertCommunication(schedule).value(), {});
  SimulationInput input{.schedule = schedule};
  const int devices = workers + dice.Roll(1, 2);
  input.topology = RandomServer(devices, dice);
  int layers = 0;
  for (int stage = 0; stage < StageCount(schedule); ++stage) {
    AddLayers(input, dice);
    input.memory.stages.push_back(RandomStagePlan(input, stage, layers, devices, dice));
    input.host_step.push_back(Nanos(dice.Roll(0, 20)));
    layers += static_cast<int>(input.layers.back().size());
  }
  input.stages.back().output = Bytes(0);
  for (std::vector<Action>& program : input.schedule.programs) {
    program = Lowering(input, dice).Run(program);
  }
  return input;
}

// What a worker holds when it begins and when it is through: what is not away of what is there
// once, and what others have parked with it.
std::vector<Bytes> HeldAtRest(const SimulationInput& input) {
  std::vector<Bytes> held(input.topology.devices.size());
  for (int stage = 0; stage < StageCount(input.schedule); ++stage) {
    const StageCost& cost = input.stages[stage];
    const StagePlan& plan = input.memory.stages[stage];
    Bytes& own = held[input.schedule.worker_of_stage[stage].value];
    own += cost.parameters + cost.gradients;
    if (plan.update == UpdatePlace::kDevice) own += cost.optimizer_state;
    for (const PlannedGroup& planned : plan.groups) {
      const auto& [group, choice] = planned;
      if (group.kind == GroupKind::kActivations || !IsSwap(choice.placement)) continue;
      if (StepsOnHost(plan, planned)) continue;
      own -= group.bytes;
      for (const Stripe& stripe : choice.stripes) held[stripe.lender.value] += stripe.bytes;
    }
  }
  return held;
}

TEST(SimulatedGroupProperties, BooksAreBalancedWhateverThePlan) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulationInput input = RandomInput(seed);
    const std::vector<Bytes> at_rest = HeldAtRest(input);
    const SimulatedStep step = Simulated(input);
    ASSERT_EQ(step.memory.size(), input.schedule.programs.size()) << seed;
    for (size_t worker = 0; worker < step.memory.size(); ++worker) {
      const MemoryByKind& left = step.memory[worker].back().bytes;
      EXPECT_EQ(Total(left), at_rest[worker]) << seed << "\n" << ToString(input.schedule);
      EXPECT_EQ(left[MemoryKind::kActivations], Bytes(0)) << seed;
      for (const MemoryPoint& point : step.memory[worker]) {
        for (const Bytes bytes : point.bytes.bytes) EXPECT_GE(bytes, Bytes(0)) << seed;
        EXPECT_LE(Total(point.bytes), Total(step.peak[worker])) << seed;
      }
    }
  }
}

TEST(SimulatedGroupProperties, ACapacityOfExactlyThePeakIsEnough) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimulationInput input = RandomInput(seed);
    SimulatedStep step = Simulated(input);
    input.capacity = TotalPeaks(step);
    input.topology.host_memory = step.host_peak;
    if (step.host_peak > Bytes(0)) step.other_memory.front().capacity = step.host_peak;
    EXPECT_EQ(Simulated(input), step) << seed;
    if (step.host_peak <= Bytes(1)) continue;
    input.topology.host_memory -= Bytes(1);
    EXPECT_EQ(Simulate(input).status().code(), absl::StatusCode::kResourceExhausted) << seed;
  }
}

TEST(SimulatedGroupProperties, TheSameInputGivesTheSameStep) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(Simulated(RandomInput(seed)), Simulated(RandomInput(seed)));
  }
}

TEST(SimulatedGroupProperties, WhatGoesOutComesBackIn) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SimulationInput input = RandomInput(seed);
    std::map<ActionKind, Bytes> wanted;
    for (const std::vector<Action>& program : input.schedule.programs) {
      for (const Action& action : program) {
        if (action.group == kWholeStage) continue;
        wanted[action.kind] +=
            input.memory.stages[action.stage.value].groups[action.group.value].group.bytes;
      }
    }
    std::map<ActionKind, Bytes> moved;
    for (const LaneTimeline& lane : Simulated(input).lanes) {
      const bool copies = lane.name.find(", copies") != std::string::npos ||
                          lane.name.find(", new parameters") != std::string::npos;
      if (lane.intervals.empty() || !copies) continue;
      moved[ActionKind::kSwapOut] += lane.bytes;
    }
    Bytes steps;  // on the host: gradients out, parameters in, but for what is there
    for (int stage = 0; stage < StageCount(input.schedule); ++stage) {
      if (input.memory.stages[stage].update == UpdatePlace::kDevice) continue;
      steps += input.stages[stage].gradients + input.stages[stage].parameters;
    }
    EXPECT_EQ(wanted[ActionKind::kSwapOut], wanted[ActionKind::kSwapIn]) << seed;
    EXPECT_EQ(moved[ActionKind::kSwapOut],
              wanted[ActionKind::kSwapOut] + wanted[ActionKind::kSwapIn] + steps)
        << seed;
  }
}

}  // namespace
}  // namespace siphon
