#include "planner/drafts/draft_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/home_groups.h"
#include "planner/simulator/simulate.h"
#include "planner/steps_on_host.h"
#include "planner/validate_schedule.h"
#include "tests/planner/dice.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// One worker, five layers of 10 bytes of activations and 4 of each other kind.
PlanningProblem FiveLayers() {
  return ProblemOf({.forward = Nanos(1),
                    .parameters = Bytes(4),
                    .gradients = Bytes(4),
                    .optimizer_state = Bytes(4),
                    .boundary = Bytes(2),
                    .saved = {{"all", Bytes(10)}}},
                   5, LoweredSchedule("1f1b", 1, 2), {});
}

// "activations 0-1 recompute", one a group.
std::vector<std::string> GroupTexts(const StagePlan& stage) {
  std::vector<std::string> texts;
  for (const auto& [group, choice] : stage.groups) {
    texts.push_back(absl::StrCat(GroupKindName(group.kind), " ", group.layers.begin, "-",
                                 group.layers.end - 1, " ", PlacementName(choice.placement)));
  }
  return texts;
}

constexpr Placement kKept = Placement::kKeep;
constexpr Placement kAgain = Placement::kRecompute;
constexpr Placement kToHost = Placement::kHostSwap;
constexpr Placement kToPeers = Placement::kPeerSwap;

TEST(PlanOf, JoinsNeighboursWithOnePlacement) {
  const PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations = {kToHost, kToHost, kKept, kAgain, kAgain};
  draft.stages[0].recompute_run = 0;
  draft.stages[0].optimizer_state[4] = kToHost;
  const MemoryPlan plan = PlanOf(problem, draft);
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_THAT(GroupTexts(plan.stages[0]),
              testing::ElementsAre("activations 0-0 host_swap", "activations 1-1 host_swap",
                                   "activations 2-2 keep", "activations 3-4 recompute",
                                   "parameters 0-4 keep", "gradients 0-4 keep",
                                   "optimizer_state 0-3 keep", "optimizer_state 4-4 host_swap"));
  EXPECT_EQ(plan.stages[0].groups[3].group.input, Bytes(2)) << "one input for both layers";
}

// A layer's parameters come in for it alone: its step is one of its own, and what is computed again
// has them together.
TEST(PlanOf, HasAGroupALayerWhereWeightsComeInLayerByLayer) {
  PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  StageDraft& stage = draft.stages[0];
  stage.activations.assign(5, kAgain);
  stage.recompute_run = 0;
  stage.parameters = {kToHost, kToHost, kKept, kKept, kKept};
  stage.gradients = {kKept, kKept, kKept, kKept, kToHost};
  EXPECT_THAT(GroupTexts(PlanOf(problem, draft).stages[0]),
              testing::ElementsAre("activations 0-0 recompute", "activations 1-1 recompute",
                                   "activations 2-4 recompute", "parameters 0-0 host_swap",
                                   "parameters 1-1 host_swap", "parameters 2-4 keep",
                                   "gradients 0-3 keep", "gradients 4-4 host_swap",
                                   "optimizer_state 0-0 keep", "optimizer_state 1-1 keep",
                                   "optimizer_state 2-3 keep", "optimizer_state 4-4 keep"));
  stage.weight_run = 2;
  EXPECT_THAT(
      GroupTexts(PlanOf(problem, draft).stages[0]),
      testing::ElementsAre("activations 0-1 recompute", "activations 2-4 recompute",
                           "parameters 0-1 host_swap", "parameters 2-4 keep", "gradients 0-3 keep",
                           "gradients 4-4 host_swap", "optimizer_state 0-1 keep",
                           "optimizer_state 2-3 keep", "optimizer_state 4-4 keep"));
  stage.stream_buffers = 1;
  EXPECT_EQ(PlanOf(problem, draft).stages[0].stream_buffers, 1);
  stage.weights = WeightResidence::kWholeActions;
  EXPECT_THAT(GroupTexts(PlanOf(problem, draft).stages[0]),
              testing::ElementsAre("activations 0-4 recompute", "parameters 0-1 host_swap",
                                   "parameters 2-4 keep", "gradients 0-3 keep",
                                   "gradients 4-4 host_swap", "optimizer_state 0-4 keep"));
  EXPECT_EQ(PlanOf(problem, draft).stages[0].stream_buffers, kMostStreamBuffers) << "none streams";
}

TEST(PlanOf, HasAGroupALayerWhereTheHostSteps) {
  PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  StageDraft& stage = draft.stages[0];
  PutStepOnHost(stage);
  stage.weight_run = 2;
  stage.parameters = {kKept, kKept, kToPeers, kToPeers, kKept};
  draft.lenders = {{{DeviceId(0)}}};
  const auto state_of = [&] {
    std::vector<std::string> texts = GroupTexts(PlanOf(problem, draft).stages[0]);
    std::erase_if(texts, [](const std::string& text) { return !text.starts_with("optimizer"); });
    return texts;
  };
  EXPECT_THAT(state_of(), testing::ElementsAre(
                              "optimizer_state 0-0 host_swap", "optimizer_state 1-1 host_swap",
                              "optimizer_state 2-3 host_swap", "optimizer_state 4-4 host_swap"));
  stage.parameters.assign(5, kKept);
  stage.optimizer_state = {kKept, kKept, kToHost, kToHost, kToPeers};
  EXPECT_THAT(state_of(),
              testing::ElementsAre("optimizer_state 0-1 keep", "optimizer_state 2-2 host_swap",
                                   "optimizer_state 3-3 host_swap", "optimizer_state 4-4 d2d_swap"))
      << "some step on the device";
}

// What is home between steps steps on the device, beside what the host steps; both only where the
// draft says so.
TEST(PlanOf, StepsOnTheDeviceWhatIsHomeBesideTheHost) {
  PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  StageDraft& stage = draft.stages[0];
  PutStepOnHost(stage);
  stage.optimizer_state[0] = kKept;
  stage.swap_run = 2;
  stage.timing.groups_away_between_steps = 1;
  const auto on_device = [&] {
    std::vector<StageRange> ranges;
    const MemoryPlan plan = PlanOf(problem, draft);
    for (const auto& [group, choice] : plan.stages[0].groups) {
      if (choice.steps_on_device) ranges.push_back(group.layers);
    }
    return ranges;
  };
  EXPECT_THAT(on_device(), testing::IsEmpty());
  stage.timing.home_beside_host = true;
  EXPECT_THAT(on_device(), testing::ElementsAre(StageRange{2, 4}, StageRange{4, 5}));
  const MemoryPlan plan = PlanOf(problem, draft);
  EXPECT_EQ(LayersSteppedOnHost(plan.stages[0]).size(), 2u);  // layer 1, and none behind the last
  for (int layer = 0; layer < 5; ++layer) {
    EXPECT_EQ(StepsOnHost(plan.stages[0], layer), layer == 1) << layer;
  }
  const auto lowered = LowerMemoryPlan(problem.schedule, plan, LoweringOf(draft));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(HomeGroupsOf(*lowered, plan).size(), 2u);
  stage.update = UpdatePlace::kDevice;
  EXPECT_THAT(on_device(), testing::IsEmpty()) << "as all others do";
}

// Streamed state is the first of a stage; what goes to peers, and so steps on the device anyway,
// counts too.
TEST(PlanOf, StepsOnTheDeviceWhatIsStreamedBesideTheHost) {
  PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  draft.lenders = {{{DeviceId(0)}}};
  StageDraft& stage = draft.stages[0];
  PutStepOnHost(stage);
  stage.optimizer_state[1] = kToPeers;
  const auto on_host = [&](int streamed) {
    stage.groups_streamed = streamed;
    const MemoryPlan plan = PlanOf(problem, draft);
    const auto lowered = LowerMemoryPlan(problem.schedule, plan, LoweringOf(draft));
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(HomeGroupsOf(*lowered, plan), testing::IsEmpty());
    std::vector<int> layers;
    for (int layer = 0; layer < 5; ++layer) {
      if (StepsOnHost(plan.stages[0], layer)) layers.push_back(layer);
    }
    return layers;
  };
  EXPECT_THAT(on_host(0), testing::ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(on_host(1), testing::ElementsAre(2, 3, 4));
  EXPECT_THAT(on_host(3), testing::ElementsAre(3, 4));
  EXPECT_THAT(on_host(9), testing::IsEmpty());
}

TEST(PlanOf, HasAStepOfItsOwnForWeightsWithoutState) {
  PlanningProblem problem = FiveLayers();
  for (LayerProfile& layer : problem.profile.layers) layer.optimizer_state = Bytes(0);
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].parameters[3] = kToHost;
  const StagePlan plan = PlanOf(problem, draft).stages[0];
  EXPECT_EQ(GroupTexts(plan).back(), "optimizer_state 3-3 keep");
  EXPECT_EQ(plan.groups.back().group.bytes, Bytes(0));
}

// Any placements of all kinds on two linked devices with a host and a drive.
DraftPlan RollDraft(const PlanningProblem& problem, Dice& dice) {
  constexpr Placement kPlaces[] = {Placement::kKeep, Placement::kPeerSwap, Placement::kHostSwap,
                                   Placement::kNvmeSwap, Placement::kRecompute};
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    for (int index = 0; index < kGroupKinds; ++index) {
      const auto kind = static_cast<GroupKind>(index);
      for (Placement& layer : PlacementsOf(stage, kind)) {
        layer = kPlaces[dice.Roll(0, kind == GroupKind::kActivations ? 4 : 3)];
      }
    }
    stage.update = dice.Roll(0, 3) == 0 ? UpdatePlace::kHost : UpdatePlace::kDevice;
    stage.groups_streamed = dice.Roll(0, 2);
    stage.recompute_run = dice.Roll(0, 3);
    stage.swap_run = dice.Roll(0, 3);
    stage.weight_run = dice.Roll(0, 3);
    stage.weights =
        dice.Roll(0, 3) == 0 ? WeightResidence::kWholeActions : WeightResidence::kLayerByLayer;
    stage.stream_buffers = dice.Roll(1, kMostStreamBuffers);
    stage.timing = {
        .forwards_to_leave = dice.Roll(0, 2),
        .actions_to_come_back = dice.Roll(0, 2),
        .turn = dice.Roll(0, 1) == 0 ? SwapTiming::Turn::kLastStay : SwapTiming::Turn::kFirstStay,
        .actions_before_step = dice.Roll(0, 2),
        .groups_ahead = dice.Roll(0, 2)};
    stage.layers_made_early = dice.Roll(0, 4);
    stage.actions_made_early = dice.Roll(0, 2);
    for (int& share : stage.shares) share = dice.Roll(1, LowerMemoryOptions::kShares);
    if (dice.Roll(0, 1) == 0) continue;
    stage.timing.groups_away_between_steps = dice.Roll(0, 2);
    stage.timing.home_beside_host = dice.Roll(0, 1) == 0;
    stage.state_times = {.gone = {dice.Roll(0, 2), dice.Roll(0, 4)},
                         .back = {dice.Roll(0, 6), dice.Roll(0, 3)},
                         .in = {dice.Roll(0, 5), dice.Roll(0, 2)}};
  }
  return draft;
}

// Weights that are there at the end of the step: what stays, and what others have parked.
void ExpectWeightsAsPlanned(const PlanningProblem& problem, const SimulatedDraft& simulated,
                            int seed) {
  std::vector<Bytes> there(problem.schedule.programs.size());  // [worker], which is its device
  const HomeGroups home = HomeGroupsOf(simulated.schedule, simulated.memory);
  for (size_t stage = 0; stage < simulated.memory.stages.size(); ++stage) {
    const StagePlan& plan = simulated.memory.stages[stage];
    for (size_t index = 0; index < plan.groups.size(); ++index) {
      const auto& [group, choice] = plan.groups[index];
      const bool on_host =
          group.kind == GroupKind::kOptimizerState && StepsOnHost(plan, plan.groups[index]);
      if (group.kind == GroupKind::kActivations || on_host) continue;
      const int worker = problem.schedule.worker_of_stage[stage].value;
      const bool is_home =
          home.contains({StageId(static_cast<int>(stage)), GroupId(static_cast<int>(index))});
      if (choice.placement == Placement::kKeep || is_home) there[worker] += group.bytes;
      for (const Stripe& stripe : choice.stripes) there[stripe.lender.value] += stripe.bytes;
    }
  }
  SimulationInput input =
      SimulationOf(problem, simulated.draft.mapping, simulated.memory, simulated.schedule);
  input.capacity.clear();
  const auto step = Simulate(input);
  ASSERT_TRUE(step.ok()) << seed << " " << step.status();
  for (size_t worker = 0; worker < there.size(); ++worker) {
    const MemoryByKind& end = step->memory[worker].back().bytes;
    EXPECT_EQ(end[MemoryKind::kParameters] + end[MemoryKind::kGradients] +
                  end[MemoryKind::kOptimizer] + end[MemoryKind::kLent],
              there[worker])
        << seed;
  }
}

TEST(DraftPlan, IsAPlanWhateverItsDecisions) {
  constexpr const char* kSchedules[] = {"1f1b", "gpipe", "zb_h1", "interleaved_1f1b", "dualpipev"};
  for (int seed = 0; seed < 150; ++seed) {
    Dice dice(seed);
    Topology topology = TwoLinkedDevices();
    topology.drives.push_back({.read = kByteANano, .write = kByteANano});
    const Schedule schedule = LoweredSchedule(kSchedules[seed % 5], 2, 2 * dice.Roll(2, 3));
    PlanningProblem problem = ProblemOf({.forward = Nanos(20),
                                         .input_backward = Nanos(20),
                                         .weight_backward = Nanos(20),
                                         .optimizer = Nanos(5),
                                         .boundary = Bytes(2)},
                                        dice.Roll(1, 4) * StageCount(schedule), schedule, topology);
    for (LayerProfile& layer : problem.profile.layers) {
      layer.saved = {{"all", Bytes(dice.Roll(0, 9))}};
      layer.parameters = Bytes(dice.Roll(0, 40));
      layer.gradients = Bytes(dice.Roll(0, 1) * layer.parameters.value);
      layer.optimizer_state = Bytes(dice.Roll(0, 3) * layer.parameters.value);
    }
    problem.granule = Bytes(1);
    problem.host_step = Nanos(50);
    SetCapacity(problem, Bytes(100'000));
    DraftSimulator simulator(problem);
    const auto simulated = simulator.Run(RollDraft(problem, dice));
    ASSERT_TRUE(simulated.ok()) << seed << " " << simulated.status();
    EXPECT_EQ(ValidateSchedule(simulated->schedule, SchedulePurpose::kTraining, simulated->memory),
              absl::OkStatus())
        << seed;
    ExpectWeightsAsPlanned(problem, *simulated, seed);
  }
}

// A layer's last tensor may be the next one's input, which that saves: then the others are all.
TEST(PlanOf, TakesFirstTensorsThatAreAllForAll) {
  PlanningProblem problem = TwoFullWorkers(Bytes(900));
  for (LayerProfile& layer : problem.profile.layers) {
    layer.saved = {{"in", Bytes(5), 1}, {"norm", Bytes(20), 400'000}, {"out", Bytes(5), 500'000}};
    layer.saved_input = layer.saved_output = Bytes(5);
  }
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations[1] = draft.stages[0].activations[3] = Placement::kRecompute;
  const auto first_tensors = [&](int some) {
    draft.stages[0].first_tensors[1] = draft.stages[0].first_tensors[3] = some;
    std::vector<std::pair<int, int>> groups;  // layer, first tensors
    const MemoryPlan plan = PlanOf(problem, draft);
    for (const PlannedGroup& planned : plan.stages[0].groups) {
      if (planned.choice.placement != Placement::kRecompute) continue;
      groups.emplace_back(planned.group.layers.begin, planned.group.first_tensors);
    }
    return groups;
  };
  EXPECT_EQ(first_tensors(1), (std::vector<std::pair<int, int>>{{1, 1}, {3, 1}}));
  // Nothing behind the stage's last layer saves its output.
  EXPECT_EQ(first_tensors(2), (std::vector<std::pair<int, int>>{{1, 0}, {3, 2}}));
}

TEST(PlanOf, CutsStripesByWhatEachLenderTakes) {
  PlanningProblem problem = FiveLayers();
  problem.granule = Bytes(1);
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations = {kToPeers, kKept, kKept, kKept, kKept};
  draft.lenders[0] = {{DeviceId(1), 3}, {DeviceId(2), 2}};
  EXPECT_THAT(PlanOf(problem, draft).stages[0].groups[0].choice.stripes,
              testing::ElementsAre(Stripe{DeviceId(1), Bytes(6)}, Stripe{DeviceId(2), Bytes(4)}));
}

TEST(PlanOf, KeepsWhatNoLenderTakes) {
  const PlanningProblem problem = FiveLayers();
  DraftPlan draft = KeepingDraft(problem);
  const MemoryPlan kept = PlanOf(problem, draft);
  draft.stages[0].activations.assign(5, kToPeers);
  EXPECT_EQ(PlanOf(problem, draft), kept);
}

TEST(Replace, SendsActivationsAndTheRestWhereTheyShall) {
  DraftPlan draft = KeepingDraft(FiveLayers());
  draft.stages[0].activations[1] = kToPeers;
  draft.stages[0].optimizer_state[2] = kToPeers;
  draft.stages[0].gradients[3] = kToPeers;
  EXPECT_TRUE(Uses(draft, kToPeers));
  const DraftPlan replaced = Replace(draft, kToPeers, kAgain, kToHost);
  EXPECT_FALSE(Uses(replaced, kToPeers));
  EXPECT_EQ(replaced.stages[0].activations[1], kAgain);
  EXPECT_EQ(replaced.stages[0].optimizer_state[2], kToHost);
  EXPECT_EQ(replaced.stages[0].gradients[3], kToHost);
  EXPECT_EQ(replaced.stages[0].parameters, std::vector<Placement>(5, kKept));
}

}  // namespace
}  // namespace siphon
