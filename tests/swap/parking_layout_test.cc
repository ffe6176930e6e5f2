#include "swap/parking_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "planner/check_group_residency.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "tests/planner/dice.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr ParkingPlace kHost = {.tier = Placement::kHostSwap};
ParkingPlace Lender(int device) {
  return {.tier = Placement::kPeerSwap, .lender = DeviceId(device)};
}

PlannedGroup Kept(int64_t bytes) { return {{.layers = {0, 1}, .bytes = Bytes(bytes)}, {}}; }
PlannedGroup OnHost(int64_t bytes) {
  PlannedGroup group = Kept(bytes);
  group.choice.placement = Placement::kHostSwap;
  return group;
}
PlannedGroup Striped(const std::vector<std::pair<int, int64_t>>& stripes) {
  PlannedGroup group = Kept(0);
  group.choice.placement = Placement::kPeerSwap;
  for (const auto& [lender, bytes] : stripes) {
    group.choice.stripes.push_back({DeviceId(lender), Bytes(bytes)});
    group.group.bytes += Bytes(bytes);
  }
  return group;
}

std::string MessageOf(const MemoryPlan& plan, absl::string_view schedule, absl::StatusCode code) {
  const auto parking = LayOutParking(plan, ParsedSchedule(schedule));
  EXPECT_EQ(parking.status().code(), code);
  return std::string(parking.status().message());
}

TEST(LayOutParking, GivesTwoSlotsToAGroupThatIsAwayTwiceAndOneToTheOther) {
  // Worker 0: group 0 is away with microbatches 0 and 1 before 0B0 has that of 0 back; group 1
  // leaves with 1 only.
  MemoryPlan plan;
  plan.stages.resize(2);
  plan.stages[0].groups = {Striped({{1, 100}, {2, 30}}), OnHost(64)};
  const auto parking = LayOutParking(
      plan, ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_OUT_END0.0 0SWAP_OUT1.0 0SWAP_OUT1.1 0F1 "
                           "0SWAP_OUT_END1.0 0SWAP_OUT_END1.1 0SWAP_IN0.0 0B0 0SWAP_IN1.1 "
                           "0SWAP_IN1.0 0B1\n"
                           "1F0 1B0 1F1 1B1\n"));
  ASSERT_TRUE(parking.ok()) << parking.status();
  WorkerParking first;
  // 100 bytes take 128 of lender 1, 30 bytes 64 of lender 2.
  first.slots[{StageId(0), GroupId(0)}] = {
      {{{Lender(1), Bytes(0), Bytes(100)}, {Lender(2), Bytes(0), Bytes(30)}}},
      {{{Lender(1), Bytes(128), Bytes(100)}, {Lender(2), Bytes(64), Bytes(30)}}}};
  first.slots[{StageId(0), GroupId(1)}] = {{{{kHost, Bytes(0), Bytes(64)}}}};
  first.bytes = {{Lender(1), Bytes(256)}, {Lender(2), Bytes(128)}, {kHost, Bytes(64)}};
  EXPECT_EQ(*parking, (std::vector<WorkerParking>{first, {}}));
  EXPECT_EQ(LentBytes(*parking, DeviceId(1)), Bytes(256));
  EXPECT_EQ(LentBytes(*parking, DeviceId(2)), Bytes(128));
  EXPECT_EQ(LentBytes(*parking, DeviceId(3)), Bytes(0));
  EXPECT_EQ(HostBytes(*parking), Bytes(64));
}

TEST(LayOutParking, BeginsEachSlotOfADriveAtABlock) {
  const ParkingPlace drive = {.tier = Placement::kNvmeSwap};
  MemoryPlan plan;
  plan.stages.resize(2);
  for (const int64_t bytes : {100, 4097}) {
    plan.stages[0].groups.push_back(Kept(bytes));
    plan.stages[0].groups.back().choice.placement = Placement::kNvmeSwap;
  }
  plan.stages[1].groups = {plan.stages[0].groups[0]};
  const auto parking =
      LayOutParking(plan, ParsedSchedule("0SWAP_OUT0.0 0SWAP_OUT0.1 0F0 0SWAP_IN0.0 0SWAP_IN0.1 "
                                         "0B0\n1SWAP_OUT0.0 1F0 1SWAP_IN0.0 1B0\n"));
  ASSERT_TRUE(parking.ok()) << parking.status();
  WorkerParking first;
  first.slots[{StageId(0), GroupId(0)}] = {{{{drive, Bytes(0), Bytes(100)}}}};
  first.slots[{StageId(0), GroupId(1)}] = {{{{drive, Bytes(4096), Bytes(4097)}}}};
  first.bytes = {{drive, Bytes(3 * 4096)}};
  EXPECT_EQ((*parking)[0], first);
  EXPECT_EQ(DriveBytes(*parking), Bytes(4 * 4096));
  EXPECT_EQ(HostBytes(*parking), Bytes(0));
}

TEST(LayOutParking, GivesTheSlotToTheNextMicrobatchOnceTheActivationsAreBack) {
  MemoryPlan plan;
  plan.stages.resize(1);
  plan.stages[0].groups = {OnHost(10)};
  const auto slots = [&](absl::string_view program) {
    const auto parking = LayOutParking(plan, ParsedSchedule(program));
    EXPECT_TRUE(parking.ok()) << parking.status();
    return parking.ok() ? parking->front().slots.at({StageId(0), GroupId(0)}).size() : 0;
  };
  // B, I and SWAP_IN_END have it back; W and SWAP_IN do not.
  EXPECT_EQ(slots("0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0B0 0SWAP_OUT1.0 0F1 0SWAP_IN1.0 0B1\n"), 1u);
  EXPECT_EQ(slots("0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0I0 0SWAP_OUT1.0 0F1 0W0 0SWAP_IN1.0 0B1\n"), 1u);
  EXPECT_EQ(slots("0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0SWAP_IN_END0.0 0SWAP_OUT1.0 0F1 0B0 "
                  "0SWAP_IN1.0 0B1\n"),
            1u);
  EXPECT_EQ(slots("0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0SWAP_OUT1.0 0F1 0B0 0SWAP_IN1.0 0B1\n"), 2u);
}

TEST(LayOutParking, AddsUpWhatSeveralWorkersParkAtOneLender) {
  MemoryPlan plan;
  plan.stages.resize(3);
  plan.stages[0].groups = {Striped({{2, 70}})};
  plan.stages[1].groups = {Kept(5), Striped({{2, 1}})};
  const auto parking = LayOutParking(plan, ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0B0\n"
                                                          "1SWAP_OUT0.1 1F0 1SWAP_IN0.1 1B0\n"
                                                          "2F0 2B0\n"));
  ASSERT_TRUE(parking.ok()) << parking.status();
  EXPECT_EQ(LentBytes(*parking, DeviceId(2)), Bytes(128 + 64));
}

TEST(LayOutParking, HasNoPiecesForAGroupWithoutBytes) {
  MemoryPlan plan;
  plan.stages.resize(1);
  plan.stages[0].groups = {OnHost(0)};
  const auto parking = LayOutParking(plan, ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0B0\n"));
  ASSERT_TRUE(parking.ok()) << parking.status();
  EXPECT_EQ(parking->front().slots.at({StageId(0), GroupId(0)}), std::vector<ParkingSlot>(1));
  EXPECT_TRUE(parking->front().bytes.empty());
}

// However often a step brings them in, and where only DROP says that they are away.
TEST(LayOutParking, HasOneSlotForWhatBelongsToNoMicrobatch) {
  MemoryPlan plan;
  plan.stages.resize(1);
  plan.stages[0].groups = {OnHost(100), OnHost(40), OnHost(8)};
  plan.stages[0].groups[0].group.kind = GroupKind::kParameters;
  plan.stages[0].groups[1].group.kind = GroupKind::kOptimizerState;
  plan.stages[0].groups[2].group.kind = GroupKind::kParameters;
  const auto parking = LayOutParking(
      plan, ParsedSchedule("0SWAP_IN.0 0DROP.2 0F0 0DROP.0 0SWAP_IN.0 0DROP.2 0B0 0SWAP_IN.1 0STEP "
                           "0SWAP_OUT.0 0SWAP_OUT.1 0SWAP_OUT_END.0 0SWAP_OUT_END.1\n"));
  ASSERT_TRUE(parking.ok()) << parking.status();
  for (int group = 0; group < 3; ++group) {
    EXPECT_EQ(parking->front().slots.at({StageId(0), GroupId(group)}).size(), 1u) << group;
  }
  EXPECT_EQ(HostBytes(*parking), Bytes(128 + 64 + 64));
}

TEST(LayOutParking, RefusesWhatItCannotPark) {
  MemoryPlan plan;
  plan.stages.resize(1);
  plan.stages[0].groups = {Kept(8), Striped({{1, 8}})};
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(MessageOf(plan, "0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0B0\n", invalid),
            "0SWAP_OUT0.0: the plan does not swap it: keep");
  EXPECT_EQ(MessageOf(plan, "0SWAP_OUT0.2 0F0 0SWAP_IN0.2 0B0\n", invalid),
            "0SWAP_OUT0.2: the plan has no such group");
  EXPECT_EQ(MessageOf(plan, "0F0 0SWAP_OUT0 0SWAP_IN0 0B0\n", invalid),
            "0SWAP_OUT0: the plan parks groups, not whole stages");
  EXPECT_EQ(MessageOf({}, "0SWAP_OUT0.0 0F0 0SWAP_IN0.0 0B0\n", invalid),
            "0SWAP_OUT0.0: the plan has no such group");
  plan.stages[0].groups[1].group.bytes = Bytes(9);
  EXPECT_EQ(MessageOf(plan, "0F0 0B0\n", invalid), "stage 0, group 1 has 9 bytes, its stripes 8");
  plan.stages[0].groups[1] = OnHost(8);
  plan.stages[0].groups[1].group.kind = GroupKind::kWeightVersions;
  EXPECT_EQ(MessageOf(plan, "0F0 0B0\n", absl::StatusCode::kFailedPrecondition),
            "stage 0, group 1 is of weight_versions with host_swap: they cannot be parked");
}

// Two stages a worker, every group at random places, in an order of actions drawn at random.
struct RandomPlan {
  MemoryPlan plan;
  Schedule schedule;
};

PlannedGroup RandomGroup(Dice& dice) {
  const int64_t bytes = dice.Roll(0, 3) == 0 ? dice.Roll(0, 2) : dice.Roll(0, 400);
  if (dice.Roll(0, 3) == 0) return Kept(bytes);
  if (dice.Roll(0, 2) == 0) return OnHost(bytes);
  std::vector<std::pair<int, int64_t>> stripes;
  for (int lender = 1, lenders = dice.Roll(1, 5); lender <= lenders; ++lender) {
    stripes.push_back({lender, dice.Roll(0, 200)});
  }
  return Striped(stripes);
}

// F and B of every microbatch, in an order in which each F precedes its B.
RandomPlan RandomProgram(Dice& dice) {
  RandomPlan random;
  const int stages = dice.Roll(1, 2);
  const int microbatches = dice.Roll(1, 6);
  random.plan.stages.resize(stages);
  for (StagePlan& stage : random.plan.stages) {
    for (int group = 0, groups = dice.Roll(1, 3); group < groups; ++group) {
      stage.groups.push_back(RandomGroup(dice));
    }
  }
  random.schedule.microbatches = microbatches;
  random.schedule.worker_of_stage.resize(stages);
  std::vector<Action>& program = random.schedule.programs.emplace_back();
  std::vector<std::pair<int, int>> left, begun;  // (stage, microbatch)
  for (int stage = 0; stage < stages; ++stage) {
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      left.push_back({stage, microbatch});
    }
  }
  const auto draw = [&](std::vector<std::pair<int, int>>& from) {
    const int place = dice.Roll(0, static_cast<int>(from.size()) - 1);
    const std::pair<int, int> drawn = from[place];
    from.erase(from.begin() + place);
    return drawn;
  };
  while (!left.empty() || !begun.empty()) {
    const bool forward = begun.empty() || (!left.empty() && dice.Roll(0, 1) == 0);
    const auto [stage, microbatch] = draw(forward ? left : begun);
    const auto add = [&, s = stage, m = microbatch](ActionKind kind, int group) {
      program.push_back({.stage = StageId(s),
                         .kind = kind,
                         .microbatch = MicrobatchId(m),
                         .group = GroupId(group)});
    };
    const std::vector<PlannedGroup>& groups = random.plan.stages[stage].groups;
    for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
      if (!IsSwap(groups[group].choice.placement)) continue;
      add(forward ? ActionKind::kSwapOut : ActionKind::kSwapIn, group);
      if (!forward && dice.Roll(0, 1) == 0) add(ActionKind::kSwapInEnd, group);
    }
    add(forward ? ActionKind::kForward : ActionKind::kBackward, kWholeStage.value);
    for (int group = 0; forward && group < static_cast<int>(groups.size()); ++group) {
      if (IsSwap(groups[group].choice.placement)) add(ActionKind::kSwapOutEnd, group);
    }
    if (forward) begun.push_back({stage, microbatch});
  }
  return random;
}

// The pieces of all slots, as (place, begin, end); checked to be inside the place and apart.
void CheckPieces(const WorkerParking& parking) {
  std::map<ParkingPlace, std::vector<std::pair<int64_t, int64_t>>> taken;
  for (const auto& [group, slots] : parking.slots) {
    for (const ParkingSlot& slot : slots) {
      for (const ParkingPiece& piece : slot.pieces) {
        EXPECT_EQ(piece.offset.value % 64, 0);
        EXPECT_GT(piece.bytes, Bytes(0));
        taken[piece.place].push_back({piece.offset.value, (piece.offset + piece.bytes).value});
      }
    }
  }
  EXPECT_EQ(taken.size(), parking.bytes.size());
  for (auto& [place, ranges] : taken) {
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
    EXPECT_EQ(parking.bytes.at(place).value, (ranges.back().second + 63) / 64 * 64);
  }
}

TEST(LayOutParking, HasARoomOfItsOwnForEachGroupThatIsAwayInRandomPrograms) {
  Dice dice(6);
  for (int round = 0; round < 300; ++round) {
    const RandomPlan random = RandomProgram(dice);
    SCOPED_TRACE(ToString(random.schedule));
    ASSERT_TRUE(CheckGroupResidency(random.schedule, random.plan).ok());
    const auto parking = LayOutParking(random.plan, random.schedule);
    ASSERT_TRUE(parking.ok()) << parking.status();
    EXPECT_EQ(*parking, *LayOutParking(random.plan, random.schedule));
    const WorkerParking& worker = parking->front();
    CheckPieces(worker);

    // Every slot has the group's bytes at the places of the plan.
    for (const auto& [group, slots] : worker.slots) {
      const PlannedGroup& planned =
          random.plan.stages[group.first.value].groups[group.second.value];
      std::map<ParkingPlace, Bytes> wanted;
      for (const Stripe& stripe : planned.choice.stripes) {
        if (stripe.bytes > Bytes(0)) wanted[Lender(stripe.lender.value)] += stripe.bytes;
      }
      if (planned.choice.stripes.empty() && planned.group.bytes > Bytes(0)) {
        wanted[kHost] = planned.group.bytes;
      }
      for (const ParkingSlot& slot : slots) {
        std::map<ParkingPlace, Bytes> there;
        for (const ParkingPiece& piece : slot.pieces) there[piece.place] += piece.bytes;
        EXPECT_EQ(there, wanted);
      }
    }

    // Slots are taken and given in the program's order: always enough, and at some moment all.
    std::map<WorkerParking::GroupPlace, std::set<int>> away;
    std::map<WorkerParking::GroupPlace, size_t> most;
    for (const Action& action : random.schedule.programs.front()) {
      const WorkerParking::GroupPlace group(action.stage, action.group);
      if (action.kind == ActionKind::kSwapOut) {
        away[group].insert(action.microbatch.value);
        most[group] = std::max(most[group], away[group].size());
      }
      if (action.kind == ActionKind::kSwapInEnd) away[group].erase(action.microbatch.value);
      if (action.kind != ActionKind::kBackward) continue;
      for (auto& [other, microbatches] : away) {
        if (other.first == action.stage) microbatches.erase(action.microbatch.value);
      }
    }
    ASSERT_EQ(worker.slots.size(), most.size());
    for (const auto& [group, count] : most) EXPECT_EQ(worker.slots.at(group).size(), count);
  }
}

// Worker 0 of GivesTwoSlotsToAGroupThatIsAwayTwiceAndOneToTheOther, with a group 2 at lender 1.
TEST(MoveParking, LeavesSlotsOfGroupsThatStayAndAddsThoseThatMoveBehindThem) {
  WorkerParking parking;
  const WorkerParking::GroupPlace first(0, 0), second(0, 1), third(0, 2);
  parking.slots[first] = {
      {{{Lender(1), Bytes(0), Bytes(100)}, {Lender(2), Bytes(0), Bytes(30)}}},
      {{{Lender(1), Bytes(128), Bytes(100)}, {Lender(2), Bytes(64), Bytes(30)}}}};
  parking.slots[second] = {{{{kHost, Bytes(0), Bytes(64)}}}};
  parking.slots[third] = {{{{Lender(1), Bytes(256), Bytes(10)}}}};
  parking.bytes = {{Lender(1), Bytes(320)}, {Lender(2), Bytes(128)}, {kHost, Bytes(64)}};
  MemoryPlan plan;
  plan.stages.resize(1);
  plan.stages[0].groups = {Striped({{1, 100}, {2, 30}}), OnHost(64), Striped({{1, 10}})};
  EXPECT_EQ(MoveParking(parking, plan), parking);

  plan.stages[0].groups[0] = OnHost(130);
  WorkerParking moved = parking;
  moved.slots[first] = {{{{kHost, Bytes(64), Bytes(130)}}}, {{{kHost, Bytes(256), Bytes(130)}}}};
  moved.bytes = {{Lender(1), Bytes(320)}, {kHost, Bytes(448)}};
  EXPECT_EQ(MoveParking(parking, plan), moved);

  plan.stages[0].groups[1].choice = {.placement = Placement::kRecompute};
  plan.stages[0].groups[2].choice = {.placement = Placement::kRecompute};
  WorkerParking alone;
  alone.slots[first] = {{{{kHost, Bytes(0), Bytes(130)}}}, {{{kHost, Bytes(192), Bytes(130)}}}};
  alone.bytes = {{kHost, Bytes(384)}};
  EXPECT_EQ(MoveParking(parking, plan), alone);
}

}  // namespace
}  // namespace siphon
