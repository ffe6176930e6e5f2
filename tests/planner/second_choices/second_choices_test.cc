#include "planner/second_choices/second_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "planner/drafts/promised_peaks.h"
#include "planner/memory/memory_kind.h"
#include "planner/placement_bytes.h"
#include "planner/second_choices/computing_again.h"
#include "planner/second_choices/host_room_on_drives.h"
#include "planner/second_choices/spare_lending.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/simulate_times.h"
#include "planner/steps_on_host.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/mpress/mpress.h"
#include "planner/strategies/strategies.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/random_problem.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using testing::AllOf;
using testing::Each;
using testing::IsEmpty;
using testing::Not;

// [group of the stage that is optimizer state and swapped]: its second choice.
std::vector<Placement> SecondOfState(const MemoryPlan& plan, int stage) {
  std::vector<Placement> choices;
  for (const auto& [group, choice] : plan.stages[stage].groups) {
    if (group.kind != GroupKind::kOptimizerState || !IsSwap(choice.placement)) continue;
    choices.push_back(choice.second_choice);
  }
  return choices;
}

StepTimes TimesOf(const PlanningProblem& problem, const DeviceMapping& mapping,
                  const FollowedPlan& plan) {
  return SimulateTimes(SimulationOf(problem, mapping, plan.memory, plan.schedule),
                       LendingDetail::kLent)
      .value();
}

std::vector<Bytes> PeaksOf(const PlanningProblem& problem, const DeviceMapping& mapping,
                           const FollowedPlan& plan) {
  const StepTimes times = TimesOf(problem, mapping, plan);
  if (problem.lending == LendingRule::kOverTime) return TotalPeaks(times.step);
  return PromisedPeaks(problem, mapping, plan.memory, plan.schedule, times).value();
}

// Where groups go whose second choice is with lenders, as workers find it.
SecondStripes StripesOf(const PlanningProblem& problem, const DeviceMapping& mapping,
                        const FollowedPlan& plan) {
  const auto most =
      PeaksComputingAgain(problem, mapping, plan, PeaksOf(problem, mapping, plan), problem.held);
  SecondStripes stripes;
  if (!most.ok()) return stripes;
  SpareLending spare(problem.topology, mapping, problem.capacity, *most, problem.granule);
  const std::vector<LiveCopies> live = PeakLiveCopies(problem.schedule);
  for (int stage = 0; stage < static_cast<int>(plan.memory.stages.size()); ++stage) {
    const std::vector<PlannedGroup>& groups = plan.memory.stages[stage].groups;
    for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
      if (!WouldGo(groups[group], Placement::kPeerSwap)) continue;
      const TensorGroup& tensors = groups[group].group;
      const auto placed = spare.Place(problem.schedule.worker_of_stage[stage], tensors.bytes,
                                      CopiesAway(tensors.kind, live[stage]));
      if (placed.has_value()) stripes[{StageId(stage), GroupId(group)}] = *placed;
    }
  }
  return stripes;
}

// Takes all second choices of each place, and expects programs that run within all limits. Returns
// how many places that were.
int ExpectAllFit(const PlanningProblem& problem, const DeviceMapping& mapping,
                 const FollowedPlan& plan) {
  const SecondStripes stripes = StripesOf(problem, mapping, plan);
  int places = 0;
  for (const Placement from : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap}) {
    const auto taken = TakeSecondChoices(
        plan,
        [from](StageId, const PlannedGroup& planned) {
          return planned.choice.placement == from &&
                 planned.choice.second_choice != Placement::kKeep;
        },
        stripes);
    EXPECT_TRUE(taken.ok()) << taken.status();
    if (!taken.ok() || taken->memory == plan.memory) continue;
    ++places;
    const absl::Status valid =
        ValidateSchedule(taken->schedule, SchedulePurpose::kTraining, taken->memory);
    EXPECT_TRUE(valid.ok()) << PlacementName(from) << ": " << valid;
    const auto step = Simulate(SimulationOf(problem, mapping, taken->memory, taken->schedule));
    EXPECT_TRUE(step.ok()) << PlacementName(from) << ": " << step.status();
    if (!step.ok()) continue;
    const std::vector<Bytes> peaks = PeaksOf(problem, mapping, *taken);
    for (size_t worker = 0; worker < problem.capacity.size(); ++worker) {
      EXPECT_LE(peaks[worker], problem.capacity[worker]) << PlacementName(from);
    }
  }
  return places;
}

// Worker 0 has the optimizer state of both of its layers with the host, which steps the second one.
// The first one's comes in, steps on the device and leaves.
class StreamedState : public testing::Test {
 protected:
  StreamedState()
      : problem_(
            ProblemOf(LayerOfMuchState(), 4, LoweredSchedule("1f1b", 2, 4), TwoLinkedDevices())) {
    problem_.granule = Bytes(1);
    problem_.host_step = Nanos(20'000);
    problem_.capacity = {Bytes(1'900), Bytes(10'000)};
  }

  SimulatedDraft WithSecond() const {
    DraftSimulator simulator(problem_);
    DraftPlan draft = KeepingDraft(problem_);
    PutStepOnHost(draft.stages[0]);
    draft.stages[0].groups_streamed = 1;
    auto simulated = simulator.Run(draft);
    EXPECT_TRUE(simulated.ok() && Fits(*simulated)) << simulated.status();
    EXPECT_EQ(AddSecondChoices(simulator, *simulated), absl::OkStatus());
    EXPECT_FALSE(StepsOnHost(simulated->memory.stages[0], 0));
    EXPECT_TRUE(StepsOnHost(simulated->memory.stages[0], 1));
    return *std::move(simulated);
  }

  void ExpectFits(const SimulatedDraft& simulated) const {
    EXPECT_EQ(
        ExpectAllFit(problem_, simulated.draft.mapping, {simulated.memory, simulated.schedule}), 1);
  }

  PlanningProblem problem_;
};

TEST_F(StreamedState, GoesToLendersWithRoom) {
  const SimulatedDraft found = WithSecond();
  EXPECT_THAT(SecondOfState(found.memory, 0),
              testing::ElementsAre(Placement::kPeerSwap, Placement::kKeep));
  ExpectFits(found);
  problem_.capacity[1] = Bytes(2'700);  // of 2,240 that it holds
  EXPECT_THAT(SecondOfState(WithSecond().memory, 0), Each(Placement::kKeep));
}

// And what the host steps to a file there.
TEST_F(StreamedState, GoesToDrives) {
  problem_.topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  const SimulatedDraft found = WithSecond();
  EXPECT_THAT(SecondOfState(found.memory, 0), Each(Placement::kNvmeSwap));
  ExpectFits(found);
}

// The first layer's state, and state, parameters and gradients of the second one.
TEST_F(StreamedState, OfTheHostsStepTakesWhatTheDriveHasLeft) {
  const LayerProfile& layer = problem_.profile.layers[0];
  const Bytes room = layer.optimizer_state + layer.parameters + layer.gradients;
  problem_.topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  Bytes& capacity = problem_.topology.drives[0].capacity;
  capacity = layer.optimizer_state + room;
  EXPECT_THAT(SecondOfState(WithSecond().memory, 0), Each(Placement::kNvmeSwap));
  capacity -= Bytes(1);
  EXPECT_THAT(SecondOfState(WithSecond().memory, 0),
              testing::ElementsAre(Placement::kNvmeSwap, Placement::kKeep));
}

// A worker after the other, each with all of its room or none; replicas take theirs all at once.
TEST(HostRoomOnDrives, IsOfWholeWorkers) {
  PlanningProblem problem =
      ProblemOf(LayerOfMuchState(), 4, LoweredSchedule("1f1b", 2, 4), TwoLinkedDevices());
  const Bytes room = problem.profile.layers[0].optimizer_state +
                     problem.profile.layers[0].parameters + problem.profile.layers[0].gradients;
  problem.topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  DraftSimulator simulator(problem);
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) PutStepOnHost(stage);
  const auto simulated = simulator.Run(draft);
  ASSERT_TRUE(simulated.ok()) << simulated.status();
  const FollowedPlan plan{simulated->memory, simulated->schedule};
  const auto given = [&](Bytes capacity) {
    problem.topology.drives[0].capacity = capacity;
    const auto with = WithHostRoomOnDrives(problem, simulated->draft.mapping, plan);
    EXPECT_TRUE(with.ok()) << with.status();
    return std::pair(SecondOfState(*with, 0), SecondOfState(*with, 1));
  };
  const std::vector<Placement> all(2, Placement::kNvmeSwap), none(2, Placement::kKeep);
  EXPECT_EQ(given(Bytes(0)), std::pair(all, all));  // no limit
  EXPECT_EQ(given(room * 4), std::pair(all, all));
  EXPECT_EQ(given(room * 4 - Bytes(1)), std::pair(all, none));
  EXPECT_EQ(given(room * 2 - Bytes(1)), std::pair(none, none));
  problem.topology.drives.clear();
  EXPECT_EQ(WithHostRoomOnDrives(problem, simulated->draft.mapping, plan).value(), plan.memory);
}

// Its layers go on to step where they did.
TEST_F(StreamedState, StepsOnTheDeviceFromThereToo) {
  const SimulatedDraft found = WithSecond();
  const FollowedPlan plan{found.memory, found.schedule};
  const auto taken = TakeSecondChoices(
      plan,
      [](StageId, const PlannedGroup& planned) {
        return planned.choice.second_choice == Placement::kPeerSwap;
      },
      StripesOf(problem_, found.draft.mapping, plan));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->schedule, found.schedule);
  EXPECT_EQ(LayersSteppedOnHost(taken->memory.stages[0]),
            LayersSteppedOnHost(found.memory.stages[0]));
}

// With all activations of four layers computed again, 880 bytes of weights and optimizer state are
// too many: the state of some layers goes to the host.
TEST(SecondChoices, OfStateThatMpressSendsToTheHost) {
  PlanningProblem problem = TwoFullWorkers(Bytes(700));
  problem.capacity[1] = Bytes(10'000);
  const auto state_goes = [&](Placement second) {
    const auto planned = PlanMpress(problem);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_THAT(SecondOfState(planned->memory, 0), AllOf(Not(IsEmpty()), Each(second)));
    const int places =
        ExpectAllFit(problem, planned->mapping, {planned->memory, planned->schedule});
    EXPECT_GE(places, second == Placement::kKeep ? 0 : 1);
  };
  state_goes(Placement::kPeerSwap);
  problem.capacity[1] = Bytes(1'450);  // 1,365 with everything kept
  state_goes(Placement::kKeep);
  problem.topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  state_goes(Placement::kNvmeSwap);
  problem.topology.drives[0].capacity = Bytes(100);
  state_goes(Placement::kKeep);
}

// A host that has room for 800 bytes of optimizer state alone takes what cannot be computed again.
TEST(SecondChoices, LeaveTheHostToWhatHasNoOtherWay) {
  PlanningProblem problem = TwoFullWorkers(Bytes(700));
  problem.capacity[1] = Bytes(10'000);
  for (const Bytes host : {Bytes(0), Bytes(800)}) {
    problem.topology.host_memory = host;
    DraftSimulator simulator(problem);
    DraftPlan draft = KeepingDraft(problem);
    for (const GroupKind kind : {GroupKind::kActivations, GroupKind::kOptimizerState}) {
      absl::c_fill(PlacementsOf(draft.stages[0], kind), Placement::kPeerSwap);
    }
    auto simulated = simulator.Run(draft);
    ASSERT_TRUE(simulated.ok() && Fits(*simulated)) << simulated.status();
    ASSERT_EQ(AddSecondChoices(simulator, *simulated), absl::OkStatus());
    int swapped = 0;
    for (const auto& [group, choice] : simulated->memory.stages[0].groups) {
      if (choice.placement != Placement::kPeerSwap) continue;
      ++swapped;
      const bool again = host > Bytes(0) && group.kind == GroupKind::kActivations;
      EXPECT_EQ(choice.second_choice, again ? Placement::kRecompute : Placement::kHostSwap);
    }
    EXPECT_EQ(swapped, 8);
    EXPECT_EQ(
        ExpectAllFit(problem, simulated->draft.mapping, {simulated->memory, simulated->schedule}),
        1);
  }
}

// With less memory than keeping everything takes, on some a host or drives that have little.
PlanningProblem TightProblem(int seed) {
  Dice dice(seed);
  PlanningProblem problem = RandomProblem(dice);
  const bool steps = absl::c_any_of(problem.schedule.programs[0], [](const Action& action) {
    return action.kind == ActionKind::kStep;
  });
  if (!steps) {
    problem.schedule = AppendOptimizerStep(InsertCommunication(problem.schedule).value(), {});
  }
  const PlannedStep kept = FindMemoryStrategy("keep")->plan(problem).value();
  Bytes most;
  for (const Bytes peak : TotalPeaks(kept.simulated)) most = std::max(most, peak);
  SetCapacity(problem, Bytes(most.value * dice.Roll(30, 95) / 100 + 1));
  if (dice.Roll(0, 2) == 0) problem.topology.host_memory = Bytes(dice.Roll(1, 300'000));
  if (!problem.topology.devices.empty() && dice.Roll(0, 1) == 0) {
    problem.topology.drives.push_back({.capacity = Bytes(dice.Roll(0, 1) * dice.Roll(1, 300'000)),
                                       .read = BytesPerSecond(50'000'000),
                                       .write = BytesPerSecond(40'000'000)});
  }
  problem.granule = Bytes(1 << dice.Roll(0, 6));
  if (dice.Roll(0, 1) == 0) problem.lending = LendingRule::kPeaks;
  problem.host_step = Nanos(dice.Roll(1, 3'000));
  return problem;
}

class SecondChoicesOf : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(SecondChoicesOf, FitWhenTheyAreTaken) {
  const auto& [strategy, all] = GetParam();
  if (kSanitized && std::string(strategy) == "auto") {
    GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  }
  const int problems = kSanitized ? all / 4 : all;
  int places = 0;
  for (int seed = 0; seed < problems; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const PlanningProblem problem = TightProblem(seed);
    const auto planned = FindMemoryStrategy(strategy)->plan(problem);
    if (!planned.ok()) continue;
    places += ExpectAllFit(problem, planned->mapping, {planned->memory, planned->schedule});
  }
  EXPECT_GT(places, problems / 8);
}

INSTANTIATE_TEST_SUITE_P(Strategies, SecondChoicesOf,
                         testing::Values(std::pair("host_swap", 120), std::pair("nvme_swap", 120),
                                         std::pair("capacity_based", 90),
                                         std::pair("weight_offload", 120), std::pair("mpress", 120),
                                         std::pair("auto", 8)),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace siphon
