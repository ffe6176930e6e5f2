// Training state that is away between its uses: who is there when, and with which bytes.

#include "pipeline/state_swaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/carried_state.h"
#include "planner/schedule.h"
#include "tests/pipeline/fake_stage.h"
#include "tests/support/in_process_parking.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr int kLayers = 5;
constexpr Bytes kFourFloats{16};

// One stage of five layers: parameters (groups 0 to 4) and gradients (5 to 9) layer by layer,
// optimizer state of all layers (10); on the host and on a lender.
MemoryPlan PlanOfFiveLayers(int stream_buffers = kMostStreamBuffers) {
  MemoryPlan plan;
  StagePlan& stage = plan.stages.emplace_back();
  stage.stream_buffers = stream_buffers;
  for (const GroupKind kind : {GroupKind::kParameters, GroupKind::kGradients}) {
    for (int layer = 0; layer < kLayers; ++layer) {
      stage.groups.push_back(
          {.group = {.kind = kind, .layers = {layer, layer + 1}, .bytes = kFourFloats},
           .choice = {.placement = Placement::kHostSwap}});
    }
  }
  stage.groups.push_back({.group = {.kind = GroupKind::kOptimizerState,
                                    .layers = {0, kLayers},
                                    .bytes = kFourFloats * kLayers},
                          .choice = {.placement = Placement::kPeerSwap,
                                     .stripes = {{DeviceId(1), kFourFloats * kLayers}}}});
  return plan;
}

class StateOfFiveLayers : public testing::Test {
 protected:
  explicit StateOfFiveLayers(HomeGroups home = {}, int stream_buffers = kMostStreamBuffers) {
    layout_.home = std::move(home);
    for (const auto& [stage, group] : layout_.home) {
      const TensorGroup at_home = PlanOfFiveLayers().stages[0].groups[group.value].group;
      EXPECT_TRUE(stage_.state_memory().Initialise({at_home.kind, at_home.layers}).ok());
    }
    layout_.worker_of_stage = {WorkerId(0)};
    layout_.owned_parameters = {1};
    layout_.memory = PlanOfFiveLayers(stream_buffers);
    std::string program;
    for (size_t group = 0; group < layout_.memory.stages[0].groups.size(); ++group) {
      program += "0SWAP_IN." + std::to_string(group) + " ";
    }
    const auto parking = LayOutParking(layout_.memory, ParseSchedule(program + "0F0\n").value());
    parking_ = std::make_unique<InProcessParking>(parking.value()[0]);
    state_ = std::make_unique<StateSwaps>(layout_, stages_, parking_->engine());
    const absl::Status away = state_->SendAway();
    EXPECT_TRUE(away.ok()) << away;
    state_->BeginStep(&recorder_);
    recorder_.BeginAction({});
  }

  absl::Status Run(const std::string& text) { return state_->Run(ParseAction(text).value()); }
  void Announce(const std::string& kind, int first_group) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const absl::Status announced = Run("0" + kind + "." + std::to_string(first_group + layer));
      ASSERT_TRUE(announced.ok()) << announced;
    }
  }
  // Layers whose tensors of that kind have memory.
  std::set<int> There(GroupKind kind) {
    std::set<int> layers;
    for (int layer = 0; layer < kLayers; ++layer) {
      if (stage_.state_memory().IsThere(kind, layer)) layers.insert(layer);
    }
    return layers;
  }
  bool IsRight(GroupKind kind, int layer, int changes = 0) {
    return stage_.state_memory().numbers(kind, layer) ==
           FakeStateMemory::Values(kind, layer, changes);
  }

  FakeStage stage_{StageId(0), 1, {}};
  std::map<StageId, StageCompute*> stages_ = {{StageId(0), &stage_}};
  WorkerLayout layout_;
  std::unique_ptr<InProcessParking> parking_;
  StepRecorder recorder_;
  std::unique_ptr<StateSwaps> state_;
};

TEST_F(StateOfFiveLayers, IsAwayBeforeTheFirstStep) {
  for (const GroupKind kind :
       {GroupKind::kParameters, GroupKind::kGradients, GroupKind::kOptimizerState}) {
    EXPECT_EQ(There(kind), std::set<int>{});
  }
  EXPECT_EQ(StateGroupsAway(layout_.memory, {}, StageId(0)).size(), 11u);
  EXPECT_TRUE(state_->EndStep().ok());
}

// There from the first step's begin on, with what training starts with; away only within a step.
class StateThatIsHome : public StateOfFiveLayers {
 protected:
  static constexpr GroupKind kState = GroupKind::kOptimizerState;
  StateThatIsHome() : StateOfFiveLayers({{StageId(0), GroupId(10)}}) {}
};

TEST_F(StateThatIsHome, LeavesWithinAStepAndIsBackAtItsEnd) {
  const std::set<int> all = {0, 1, 2, 3, 4};
  EXPECT_EQ(There(kState), all);
  EXPECT_EQ(There(GroupKind::kParameters), std::set<int>{});
  EXPECT_EQ(StateGroupsAway(layout_.memory, layout_.home, StageId(0)).size(), 10u);
  EXPECT_TRUE(state_->EndStep().ok());
  for (int step = 0; step < 3; ++step) {
    state_->BeginStep(&recorder_);
    ASSERT_TRUE(Run("0SWAP_OUT.10").ok());
    ASSERT_TRUE(Run("0SWAP_OUT_END.10").ok());
    EXPECT_EQ(There(kState), std::set<int>{});
    EXPECT_EQ(state_->EndStep().message(),
              "left over at the end of the step: stage 0, group 10, which is to be there between "
              "steps");
    state_->BeginStep(&recorder_);
    ASSERT_TRUE(Run("0SWAP_IN.10").ok());
    ASSERT_TRUE(state_->NeedForStep(StageId(0), {3, 4}).ok());
    EXPECT_EQ(There(kState), all);
    for (int layer = 0; layer < kLayers; ++layer) {
      EXPECT_TRUE(IsRight(kState, layer, step)) << step << " " << layer;
      stage_.state_memory().numbers(kState, layer) =
          FakeStateMemory::Values(kState, layer, step + 1);
    }
    EXPECT_TRUE(state_->EndStep().ok());
  }
}

TEST_F(StateOfFiveLayers, ComesWithItsBytesAndLeavesChangedOrNot) {
  ASSERT_TRUE(Run("0SWAP_IN.10").ok());
  ASSERT_TRUE(state_->NeedForStep(StageId(0), {3, 4}).ok());
  for (int layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(IsRight(GroupKind::kOptimizerState, layer)) << layer;
  }
  stage_.state_memory().numbers(GroupKind::kOptimizerState, 2) =
      FakeStateMemory::Values(GroupKind::kOptimizerState, 2, 7);
  ASSERT_TRUE(Run("0SWAP_OUT.10").ok());
  ASSERT_TRUE(Run("0SWAP_OUT_END.10").ok());
  EXPECT_EQ(There(GroupKind::kOptimizerState), std::set<int>{});

  // What changes and is dropped is as it left.
  ASSERT_TRUE(Run("0SWAP_IN.10").ok());
  ASSERT_TRUE(Run("0SWAP_IN_END.10").ok());
  EXPECT_TRUE(IsRight(GroupKind::kOptimizerState, 2, 7));
  stage_.state_memory().numbers(GroupKind::kOptimizerState, 2)[3] = 0;
  ASSERT_TRUE(Run("0DROP.10").ok());
  ASSERT_TRUE(Run("0SWAP_IN.10").ok());
  ASSERT_TRUE(Run("0SWAP_IN_END.10").ok());
  EXPECT_TRUE(IsRight(GroupKind::kOptimizerState, 2, 7));
}

// planner/memory_plan.h: the one in use and the next one of parameters, of gradients those that
// leave, too; with fewer buffers as many layers' as there are.
class StreamsOfFiveLayers : public StateOfFiveLayers, public testing::WithParamInterface<int> {
 protected:
  StreamsOfFiveLayers() : StateOfFiveLayers({}, GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Buffers, StreamsOfFiveLayers, testing::Values(1, 2, 3));

TEST_P(StreamsOfFiveLayers, StreamThroughABackward) {
  const auto buffers = static_cast<size_t>(GetParam());
  Announce("DROP", 0);
  Announce("SWAP_OUT", kLayers);
  const Action backward = ParseAction("0B0").value();
  state_->BeginPass(backward);
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    SCOPED_TRACE(layer);
    ASSERT_TRUE(state_->Enter(StageId(0), layer).ok());
    std::set<int> parameters = {layer};
    if (layer > 0 && buffers > 1) parameters.insert(layer - 1);
    EXPECT_EQ(There(GroupKind::kParameters), parameters);
    EXPECT_TRUE(IsRight(GroupKind::kParameters, layer));
    EXPECT_TRUE(IsRight(GroupKind::kGradients, layer));
    // With three the last one waits for nobody who leaves.
    EXPECT_LE(There(GroupKind::kGradients).size(), layer > 0 || buffers == 1 ? buffers : 5u);
    stage_.state_memory().numbers(GroupKind::kGradients, layer) =
        FakeStateMemory::Values(GroupKind::kGradients, layer, 1);
    ASSERT_TRUE(state_->Leave(StageId(0), layer).ok());
    EXPECT_FALSE(There(GroupKind::kParameters).contains(layer));
  }
  EXPECT_EQ(There(GroupKind::kParameters), std::set<int>{});
  for (int layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(Run("0SWAP_OUT_END." + std::to_string(kLayers + layer)).ok());
  }
  EXPECT_EQ(There(GroupKind::kGradients), std::set<int>{});
  EXPECT_TRUE(state_->EndStep().ok());
  ASSERT_TRUE(Run("0SWAP_IN.7").ok());
  ASSERT_TRUE(Run("0SWAP_IN_END.7").ok());
  EXPECT_TRUE(IsRight(GroupKind::kGradients, 2, 1));
}

// A forward goes the other way, and leaves the announcements of others alone.
TEST_P(StreamsOfFiveLayers, StreamThroughAForward) {
  Announce("DROP", 0);
  state_->BeginPass(ParseAction("0F0").value());
  for (int layer = 0; layer < kLayers; ++layer) {
    SCOPED_TRACE(layer);
    ASSERT_TRUE(state_->Enter(StageId(0), layer).ok());
    std::set<int> parameters = {layer};
    if (layer + 1 < kLayers && GetParam() > 1) parameters.insert(layer + 1);
    EXPECT_EQ(There(GroupKind::kParameters), parameters);
    EXPECT_EQ(There(GroupKind::kGradients), std::set<int>{});
    ASSERT_TRUE(state_->Leave(StageId(0), layer).ok());
  }
  EXPECT_TRUE(state_->EndStep().ok());
}

TEST_F(StateOfFiveLayers, WaitsForWhatIsOnItsWayIn) {
  ASSERT_TRUE(Run("0SWAP_IN.1").ok());
  ASSERT_TRUE(Run("0SWAP_IN.2").ok());
  state_->BeginPass(ParseAction("0F0").value());
  ASSERT_TRUE(state_->Enter(StageId(0), 1).ok());
  EXPECT_TRUE(IsRight(GroupKind::kParameters, 1));
  ASSERT_TRUE(state_->NeedParameters(StageId(0), {2, 3}).ok());
  EXPECT_TRUE(IsRight(GroupKind::kParameters, 2));
  ASSERT_TRUE(state_->Leave(StageId(0), 1).ok());
  EXPECT_EQ(There(GroupKind::kParameters), (std::set<int>{1, 2}));
  EXPECT_EQ(state_->EndStep().message(),
            "left over at the end of the step: stage 0, group 1, which is to be away between "
            "steps");
}

TEST_F(StateOfFiveLayers, NamesWhatIsOutOfOrder) {
  ASSERT_TRUE(Run("0SWAP_IN.0").ok());
  EXPECT_EQ(Run("0SWAP_IN.0").message(),
            "0SWAP_IN.0: the parameters of layers [0, 1) are on their way in");
  EXPECT_THAT(Run("0SWAP_OUT_END.0").message(), HasSubstr("on their way in"));
  EXPECT_EQ(Run("0SWAP_IN_END.10").message(),
            "0SWAP_IN_END.10: the optimizer_state of layers [0, 5) are away");
  EXPECT_EQ(Run("0SWAP_IN.11").message(), "0SWAP_IN.11: the plan does not send this group away");
}

TEST(StateSwaps, NeedAPlaceToGo) {
  FakeStage stage(StageId(0), 1, {});
  const std::map<StageId, StageCompute*> stages = {{StageId(0), &stage}};
  WorkerLayout layout{.worker_of_stage = {WorkerId(0)}, .owned_parameters = {1}};
  EXPECT_TRUE(StateSwaps(layout, stages, nullptr).SendAway().ok());
  layout.memory = PlanOfFiveLayers();
  EXPECT_THAT(StateSwaps(layout, stages, nullptr).SendAway().message(),
              HasSubstr("no place to park"));
}

// With the step on the host, the optimizer's state is there.
TEST(StateSwaps, LeaveStateThatTheHostHas) {
  MemoryPlan plan = PlanOfFiveLayers();
  PlannedGroup& state = plan.stages[0].groups.back();
  state.choice = {.placement = Placement::kHostSwap};
  plan.stages[0].update = UpdatePlace::kHost;
  std::vector<StateGroup> away = StateGroupsAway(plan, {}, StageId(0));
  ASSERT_EQ(away.size(), 11u);
  // Not a group that moves: all of the stage's, which never is on the worker.
  EXPECT_EQ(away.back().kind, GroupKind::kOptimizerState);
  EXPECT_EQ(away.back().layers.begin, 0);
  EXPECT_GE(away.back().layers.end, 5);
  EXPECT_EQ(StateAway(plan, {}).size(), 10u) << "the host's own is parked by nobody";
  // What is with a lender steps on the device, and moves.
  state.group.layers = {1, 2};
  state.choice = {.placement = Placement::kPeerSwap};
  away = StateGroupsAway(plan, {}, StageId(0));
  ASSERT_EQ(away.size(), 13u);
  EXPECT_EQ(away[10].layers, (StageRange{1, 2}));
  EXPECT_EQ(away[11].layers, (StageRange{0, 1}));
  EXPECT_EQ(away[12].layers.begin, 2);
  EXPECT_EQ(StateAway(plan, {}).size(), 11u);
  EXPECT_TRUE(StateGroupsAway({}, {}, StageId(0)).empty());
}

}  // namespace
}  // namespace siphon
