// Training state that one plan has elsewhere than another one, between two steps.

#include "pipeline/carried_state.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/schedule.h"
#include "tests/pipeline/fake_stage.h"
#include "tests/support/in_process_parking.h"

namespace siphon {
namespace {

constexpr int kLayers = 3;
constexpr Bytes kTensor{16};  // of each layer and kind
constexpr GroupKind kKinds[] = {GroupKind::kParameters, GroupKind::kGradients,
                                GroupKind::kOptimizerState};
constexpr int kChanges = 7;

PlannedGroup Group(GroupKind kind, int begin, int end, Placement placement) {
  const Bytes bytes = kTensor * (end - begin);
  PlannedGroup planned{.group = {.kind = kind, .layers = {begin, end}, .bytes = bytes},
                       .choice = {.placement = placement}};
  if (placement == Placement::kPeerSwap) planned.choice.stripes = {{DeviceId(1), bytes}};
  return planned;
}

MemoryPlan PlanOf(std::vector<PlannedGroup> groups) {
  MemoryPlan plan;
  plan.stages.push_back({.groups = std::move(groups)});
  return plan;
}

// All that is parked is away between steps.
Schedule ProgramOf(const MemoryPlan& plan) {
  std::string program;
  for (size_t group = 0; group < plan.stages[0].groups.size(); ++group) {
    const PlannedGroup& planned = plan.stages[0].groups[group];
    if (IsSwap(planned.choice.placement)) program += "0SWAP_IN." + std::to_string(group) + " ";
  }
  return ParseSchedule(program + "0F0\n").value();
}
std::vector<ParkedState> AwayBy(const MemoryPlan& plan) { return StateAway(plan, ProgramOf(plan)); }

// Where the plan parks, and who moves things there.
std::unique_ptr<InProcessParking> ParkingOf(const MemoryPlan& plan) {
  const auto parking = LayOutParking(plan, ProgramOf(plan));
  EXPECT_TRUE(parking.ok()) << parking.status();
  return std::make_unique<InProcessParking>(parking.value()[0]);
}

class CarriedStateTest : public testing::Test {
 protected:
  CarriedStateTest() {
    for (const GroupKind kind : kKinds) {
      for (int layer = 0; layer < kLayers; ++layer) {
        memory().numbers(kind, layer) = FakeStateMemory::Values(kind, layer, kChanges);
      }
    }
  }

  FakeStateMemory& memory() { return stage_.state_memory(); }

  // From the plan in force to this one.
  void MoveTo(MemoryPlan plan) {
    CarriedState carried;
    const absl::Status out = carried.TakeOut(
        stages_, AwayBy(now_), parking_ == nullptr ? nullptr : parking_->engine(), AwayBy(plan));
    ASSERT_TRUE(out.ok()) << out;
    parking_ = ParkingOf(plan);
    now_ = std::move(plan);
    const absl::Status back = carried.PutBack(stages_, AwayBy(now_), parking_->engine());
    ASSERT_TRUE(back.ok()) << back;
    EXPECT_EQ(carried.bytes(), Bytes(0));
  }

  // Layers of that kind with memory, as "02".
  std::string There(GroupKind kind) {
    std::string layers;
    for (int layer = 0; layer < kLayers; ++layer) {
      if (memory().IsThere(kind, layer)) layers += std::to_string(layer);
    }
    return layers;
  }
  void ExpectNumbers() {
    for (const GroupKind kind : kKinds) {
      for (int layer = 0; layer < kLayers; ++layer) {
        EXPECT_EQ(memory().numbers(kind, layer), FakeStateMemory::Values(kind, layer, kChanges))
            << GroupKindName(kind) << " of layer " << layer;
      }
    }
  }

  FakeStage stage_{StageId(0), 1, {}};
  const std::map<StageId, StageCompute*> stages_ = {{StageId(0), &stage_}};
  MemoryPlan now_ = PlanOf({});
  std::unique_ptr<InProcessParking> parking_;
};

MemoryPlan LayerByLayer() {
  return PlanOf({Group(GroupKind::kParameters, 0, 1, Placement::kHostSwap),
                 Group(GroupKind::kParameters, 1, 2, Placement::kPeerSwap),
                 Group(GroupKind::kActivations, 0, 3, Placement::kRecompute),
                 Group(GroupKind::kOptimizerState, 0, 3, Placement::kPeerSwap)});
}

MemoryPlan OtherGroups() {
  return PlanOf({Group(GroupKind::kGradients, 0, 1, Placement::kHostSwap),
                 Group(GroupKind::kParameters, 1, 3, Placement::kHostSwap),
                 Group(GroupKind::kOptimizerState, 0, 1, Placement::kKeep),
                 Group(GroupKind::kOptimizerState, 1, 2, Placement::kPeerSwap),
                 Group(GroupKind::kOptimizerState, 2, 3, Placement::kHostSwap)});
}

TEST_F(CarriedStateTest, IsWhereThePlanHasIt) {
  MoveTo(LayerByLayer());
  EXPECT_EQ(There(GroupKind::kParameters), "2");
  EXPECT_EQ(There(GroupKind::kGradients), "012");
  EXPECT_EQ(There(GroupKind::kOptimizerState), "");
  MoveTo(OtherGroups());
  EXPECT_EQ(There(GroupKind::kParameters), "0");
  EXPECT_EQ(There(GroupKind::kGradients), "12");
  EXPECT_EQ(There(GroupKind::kOptimizerState), "0");
  for (const int group : {0, 1, 3, 4}) {
    EXPECT_TRUE(parking_->engine()->IsAway({StageId(0), GroupId(group), kNoMicrobatch})) << group;
  }
}

TEST_F(CarriedStateTest, KeepsItsBytesThroughPlansOfOtherGroupsAndBack) {
  MoveTo(LayerByLayer());
  MoveTo(OtherGroups());
  MoveTo(LayerByLayer());
  MoveTo(PlanOf({}));
  ExpectNumbers();
}

// Both plans keep the parameters of no common layer, the gradients of layers 1 and 2, and no
// optimizer state: two tensors, and a group of the three moments beside what the first one keeps.
TEST_F(CarriedStateTest, TakesNoMoreMemoryThanOneOfThePlansAndAGroup) {
  MoveTo(LayerByLayer());
  const int first = memory().there();  // one parameter, three gradients
  EXPECT_EQ(first, 4);
  memory().ResetMost();
  MoveTo(OtherGroups());
  EXPECT_EQ(memory().there(), 4);  // one parameter, two gradients, one moment
  EXPECT_EQ(memory().most_there(), first + 3);
}

TEST_F(CarriedStateTest, IsAtMostWhatEitherPlanHasElsewhere) {
  // Parameters of layers 0 and 1, three moments; of the other plan what is no group of the first.
  EXPECT_EQ(CarriedAtMost(AwayBy(LayerByLayer()), AwayBy(PlanOf({}))), kTensor * 5);
  EXPECT_EQ(CarriedAtMost(AwayBy(LayerByLayer()), AwayBy(LayerByLayer())), kTensor * 5);
  EXPECT_EQ(CarriedAtMost(AwayBy(LayerByLayer()), AwayBy(OtherGroups())),
            kTensor * (5 + 1 + 2 + 1 + 1));
}

// Optimizer state that only leaves within steps is with its worker when another plan comes.
TEST(StateAway, IsNotWhatIsHomeBetweenSteps) {
  const MemoryPlan plan = PlanOf({Group(GroupKind::kOptimizerState, 0, 1, Placement::kHostSwap),
                                  Group(GroupKind::kOptimizerState, 1, 3, Placement::kHostSwap)});
  const auto training =
      ParseSchedule("0SWAP_OUT.0 0SWAP_OUT_END.0 0SWAP_IN.1 0F0 0SWAP_IN.0 0SWAP_IN_END.0\n");
  ASSERT_TRUE(training.ok()) << training.status();
  const std::vector<ParkedState> away = StateAway(plan, *training);
  ASSERT_EQ(away.size(), 1u);
  EXPECT_EQ(away[0].parked, (ParkedGroup{StageId(0), GroupId(1), kNoMicrobatch}));
  EXPECT_EQ(away[0].group, (StateGroup{GroupKind::kOptimizerState, {1, 3}}));
  EXPECT_EQ(away[0].bytes, kTensor * 2);
}

TEST_F(CarriedStateTest, LeavesWhatNoPlanMovesWhereItIs) {
  const std::byte* const before =
      reinterpret_cast<std::byte*>(memory().numbers(GroupKind::kGradients, 2).data());
  MoveTo(LayerByLayer());
  MoveTo(OtherGroups());
  EXPECT_EQ(reinterpret_cast<std::byte*>(memory().numbers(GroupKind::kGradients, 2).data()),
            before);
}

}  // namespace
}  // namespace siphon
