// Strategies that send weights to the host between their uses: l2l and weight_offload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

absl::StatusOr<PlannedStep> PlanWith(absl::string_view strategy, const PlanningProblem& problem) {
  const auto found = FindMemoryStrategy(strategy);
  return found.ok() ? found->plan(problem) : found.status();
}

PlannedStep Planned(absl::string_view strategy, const PlanningProblem& problem) {
  auto planned = PlanWith(strategy, problem);
  EXPECT_TRUE(planned.ok()) << planned.status();
  return planned.ok() ? *std::move(planned) : PlannedStep{};
}

// Four layers on one device, two microbatches forward and then backward. A forward of a layer takes
// 8 ns, a backward 6, and its 10 bytes of parameters come in or go out within 10.
PlanningProblem FourLayers() {
  PlanningProblem problem = ProblemOf({.forward = Nanos(8),
                                       .input_backward = Nanos(3),
                                       .weight_backward = Nanos(3),
                                       .parameters = Bytes(10)},
                                      4, LoweredSchedule("gpipe", 1, 2),
                                      WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  SetCapacity(problem, Bytes(40));
  return problem;
}

// "parameters 3", ..., what goes to the host, stage after stage.
std::vector<std::string> Away(const PlannedStep& planned) {
  std::vector<std::string> texts;
  for (const StagePlan& stage : planned.memory.stages) {
    for (const auto& [group, choice] : stage.groups) {
      if (choice.placement != Placement::kHostSwap) continue;
      EXPECT_EQ(group.layers.end, group.layers.begin + 1);
      texts.push_back(absl::StrCat(GroupKindName(group.kind), " ", group.layers.begin));
    }
  }
  return texts;
}

Bytes Moved(const PlannedStep& planned, absl::string_view lane) {
  Bytes bytes;
  for (const LaneTimeline& timeline : planned.simulated.lanes) {
    if (timeline.name == lane) bytes += timeline.bytes;
  }
  return bytes;
}

// A forward waits 10 for its first layer; the next ones come in while it computes 8: 10 + 3 * 10 +
// 8 = 48. A backward takes 10 + 3 * 10 + 6 = 46. The step brings each layer in while the one before
// goes out: 5 * 10.
TEST(LayerToLayer, HasOneLayerInUseAndTheNextOneOnItsWay) {
  const PlannedStep planned = Planned("l2l", FourLayers());
  EXPECT_THAT(Away(planned),
              testing::ElementsAre("parameters 0", "parameters 1", "parameters 2", "parameters 3"));
  EXPECT_EQ(planned.simulated.step_time, Nanos(2 * 48 + 2 * 46 + 50));
  EXPECT_EQ(Total(planned.simulated.peak[0]), Bytes(20));
  EXPECT_EQ(planned.simulated.host_peak, Bytes(40));
  // Each microbatch twice and the step once; only the step changes them.
  EXPECT_EQ(Moved(planned, "device 0, copies from host"), Bytes((2 * 2 + 1) * 40));
  EXPECT_EQ(Moved(planned, "device 0, copies to host"), Bytes(40));
}

// Where copies are faster than layers, only each action's first one is seen.
TEST(LayerToLayer, HidesCopiesThatAreFasterThanLayers) {
  PlanningProblem problem = FourLayers();
  problem.topology = WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                              {.to_host = kByteANano * 5, .from_host = kByteANano * 5});
  EXPECT_EQ(Planned("l2l", problem).simulated.step_time,
            Nanos(2 * (2 + 4 * 8) + 2 * (2 + 4 * 6) + 5 * 2));
}

TEST(LayerToLayer, StepsOnTheHostWhereThatIsFaster) {
  PlanningProblem problem = FourLayers();
  for (LayerProfile& layer : problem.profile.layers) layer.optimizer_state = Bytes(20);
  SetCapacity(problem, Bytes(60));  // two layers with all that they have
  problem.host_step = Nanos(40);
  const PlannedStep on_host = Planned("l2l", problem);
  EXPECT_EQ(on_host.memory.stages[0].update, UpdatePlace::kHost);
  EXPECT_EQ(on_host.simulated.step_time, Nanos(2 * 48 + 2 * 46 + 40));
  EXPECT_EQ(Moved(on_host, "device 0, copies to host"), Bytes(0));
  problem.host_step = Nanos(1000);  // 30 bytes a layer in and out on the device: 5 * 30
  const PlannedStep on_device = Planned("l2l", problem);
  EXPECT_EQ(on_device.memory.stages[0].update, UpdatePlace::kDevice);
  EXPECT_EQ(on_device.simulated.step_time, Nanos(2 * 48 + 2 * 46 + 150));
}

// Gradients come in and go out again with each backward: of a layer 20 bytes come in, 10 go out.
TEST(LayerToLayer, BringsGradientsInToAddToThem) {
  PlanningProblem problem = FourLayers();
  for (LayerProfile& layer : problem.profile.layers) layer.gradients = Bytes(10);
  const PlannedStep planned = Planned("l2l", problem);
  EXPECT_EQ(Away(planned).size(), 8u);
  EXPECT_EQ(Moved(planned, "device 0, copies from host"), Bytes((4 + 1) * 40 + (2 + 1) * 40));
  EXPECT_EQ(Moved(planned, "device 0, copies to host"), Bytes(40 + (2 + 1) * 40));
  EXPECT_LE(Total(planned.simulated.peak[0]), Bytes(2 * 10 + 3 * 10));
}

TEST(LayerToLayer, SaysWhatTwoLayersNeed) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(19));
  EXPECT_EQ(PlanWith("l2l", problem).status().ToString(),
            "RESOURCE_EXHAUSTED: worker 0 needs 20 B at its fullest under l2l, its capacity is "
            "19 B");
}

TEST(WeightOffload, KeepsEverythingWhereItFits) {
  const PlannedStep planned = Planned("weight_offload", FourLayers());
  EXPECT_THAT(Away(planned), testing::IsEmpty());
  EXPECT_EQ(planned.simulated.step_time, Nanos(2 * 32 + 2 * 24));
}

// One layer that stays and two that come in by turns are 30 bytes; with two that stay it is 40.
TEST(WeightOffload, LetsAsFewLayersLeaveAsItCan) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(39));
  const PlannedStep planned = Planned("weight_offload", problem);
  EXPECT_EQ(Away(planned).size(), 3u);
  EXPECT_EQ(Total(planned.simulated.peak[0]), Bytes(30));
  EXPECT_EQ(Moved(planned, "device 0, copies from host"), Bytes(5 * 30));
  SetCapacity(problem, Bytes(29));
  EXPECT_EQ(Away(Planned("weight_offload", problem)).size(), 4u);
  SetCapacity(problem, Bytes(19));
  EXPECT_TRUE(absl::IsResourceExhausted(PlanWith("weight_offload", problem).status()));
}

TEST(WeightOffload, TakesOptimizerStateThenParametersThenGradients) {
  PlanningProblem problem = FourLayers();
  for (LayerProfile& layer : problem.profile.layers) {
    layer.gradients = Bytes(10);
    layer.optimizer_state = Bytes(60);
  }
  // All kept: 320. State steps by turns of two layers: 80 + 120.
  SetCapacity(problem, Bytes(200));
  for (const std::string& away : Away(Planned("weight_offload", problem))) {
    EXPECT_THAT(away, testing::StartsWith("optimizer_state"));
  }
  // Then parameters; two layers' units of 70 and gradients are 180.
  SetCapacity(problem, Bytes(180));
  const std::vector<std::string> away = Away(Planned("weight_offload", problem));
  EXPECT_THAT(away, testing::Contains("parameters 3"));
  EXPECT_THAT(away, testing::Not(testing::Contains(testing::StartsWith("gradients"))));
}

TEST(WeightOffload, NeverMovesMoreThanLayerToLayer) {
  for (const int capacity : {30, 33, 36, 39, 40}) {
    PlanningProblem problem = FourLayers();
    SetCapacity(problem, Bytes(capacity));
    const PlannedStep some = Planned("weight_offload", problem);
    const PlannedStep all = Planned("l2l", problem);
    EXPECT_LT(some.simulated.step_time, all.simulated.step_time) << capacity;
    EXPECT_LT(Moved(some, "device 0, copies from host"), Moved(all, "device 0, copies from host"));
  }
}

// Six layers, of which three leave: 30 bytes stay, and two layers come in by turns. Of the greedy's
// choice, the last three, the first copy of each backward has nothing to hide behind: 54 ns. Layers
// 1, 2 and 4 take 44, and 52 forward. The step's copies: 3 in and, behind the last one, 1 out.
TEST(WeightOffload, SpreadsLayersThatAreEqual) {
  PlanningProblem problem = FourLayers();
  problem.profile.layers.assign(6, problem.profile.layers[0]);
  problem.partition.stages = {{0, 6}};
  SetCapacity(problem, Bytes(50));
  const PlannedStep planned = Planned("weight_offload", problem);
  EXPECT_THAT(Away(planned), testing::ElementsAre("parameters 1", "parameters 2", "parameters 4"));
  EXPECT_EQ(planned.simulated.step_time, Nanos(2 * 52 + 2 * 44 + 40));
}

// Billions of parameters a worker: only optimizer state has to leave.
TEST(WeightOffload, TakesModelsOfManyBillions) {
  PlanningProblem problem = ProblemOf(GptLayer(), 10, LoweredSchedule("1f1b", 2, 4), Dgx1V100());
  SetCapacity(problem, Bytes(18 * kGiB));
  EXPECT_TRUE(absl::IsResourceExhausted(PlanWith("keep", problem).status()));
  const PlannedStep planned = Planned("weight_offload", problem);
  EXPECT_THAT(Away(planned), testing::Each(testing::StartsWith("optimizer_state")));
  EXPECT_THAT(Away(planned), testing::Not(testing::IsEmpty()));
}

// Updates in the middle of the step need all weights there.
TEST(WeightStrategies, LeaveStagesWithAsynchronousUpdatesAlone) {
  PlanningProblem problem = FourLayers();
  for (std::vector<Action>& program : problem.schedule.programs) {
    for (Action& action : program) {
      if (action.kind == ActionKind::kStep) action.kind = ActionKind::kUpdate;
    }
  }
  for (const char* strategy : {"l2l", "weight_offload"}) {
    EXPECT_THAT(Away(Planned(strategy, problem)), testing::IsEmpty()) << strategy;
  }
}

// [group of stage 0 that the strategy swaps]: its second choice.
std::vector<Placement> SecondChoices(const PlannedStep& planned) {
  std::vector<Placement> choices;
  for (const auto& [group, choice] : planned.memory.stages[0].groups) {
    if (IsSwap(choice.placement)) choices.push_back(choice.second_choice);
  }
  return choices;
}

TEST(WeightStrategies, HaveDrivesAsTheirSecondChoice) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(30));
  const auto all_are = [](Placement second) {
    return testing::AllOf(testing::Not(testing::IsEmpty()), testing::Each(second));
  };
  for (const char* strategy : {"l2l", "weight_offload"}) {
    EXPECT_THAT(SecondChoices(Planned(strategy, problem)), all_are(Placement::kKeep))
        << strategy << ": there is nothing but the host";
  }
  problem.topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  for (const char* strategy : {"l2l", "weight_offload"}) {
    EXPECT_THAT(SecondChoices(Planned(strategy, problem)), all_are(Placement::kNvmeSwap))
        << strategy;
  }
  problem.topology.drives[0].capacity = Bytes(29);  // of 30 that are away at least
  for (const char* strategy : {"l2l", "weight_offload"}) {
    EXPECT_THAT(SecondChoices(Planned(strategy, problem)),
                testing::AllOf(testing::Contains(Placement::kKeep),
                               testing::Contains(Placement::kNvmeSwap)))
        << strategy << ": the drive is too small for all of them";
  }
}

Bytes WeightsAtTheEnd(const PlannedStep& planned, int worker) {
  const MemoryByKind& bytes = planned.simulated.memory[worker].back().bytes;
  return bytes[MemoryKind::kParameters] + bytes[MemoryKind::kGradients] +
         bytes[MemoryKind::kOptimizer];
}

Bytes WeightsThatStay(const PlanningProblem& problem, const PlannedStep& planned, int worker) {
  Bytes bytes;
  for (const StageId stage : StagesOf(problem.schedule, WorkerId(worker))) {
    const StagePlan& plan = planned.memory.stages[stage.value];
    for (const auto& [group, choice] : plan.groups) {
      const bool state = group.kind == GroupKind::kOptimizerState;
      if (group.kind == GroupKind::kActivations || choice.placement != Placement::kKeep) continue;
      if (!state || plan.update == UpdatePlace::kDevice) bytes += group.bytes;
    }
  }
  return bytes;
}

TEST(WeightStrategies, PlansAreValidOrSayThatTheyDoNotFit) {
  constexpr const char* kSchedules[] = {"1f1b", "gpipe", "zb_h1", "interleaved_1f1b", "looped_bfs"};
  int fits = 0;
  for (uint32_t seed = 0; seed < 25; ++seed) {
    std::mt19937 dice(seed);
    const auto roll = [&dice](int low, int high) {
      return low + static_cast<int>(dice() % static_cast<uint32_t>(high - low + 1));
    };
    const Schedule schedule = LoweredSchedule(kSchedules[seed % 5], 2, 2 * roll(1, 3));
    PlanningProblem problem =
        ProblemOf({.forward = Nanos(roll(5, 50)),
                   .input_backward = Nanos(roll(5, 50)),
                   .weight_backward = Nanos(roll(5, 50)),
                   .optimizer = Nanos(roll(0, 9)),
                   .boundary = Bytes(2),
                   .saved = {{"all", Bytes(roll(0, 9))}}},
                  roll(1, 4) * StageCount(schedule), schedule, TwoLinkedDevices());
    for (LayerProfile& layer : problem.profile.layers) {
      layer.parameters = Bytes(roll(0, 40));
      layer.gradients = Bytes(roll(0, 2) * layer.parameters.value / 2);
      layer.optimizer_state = Bytes(roll(0, 3) * layer.parameters.value);
    }
    problem.host_step = Nanos(roll(0, 1) * 50);
    Bytes most;
    for (const MemoryByKind& peak : Planned("keep", problem).simulated.peak) {
      most = std::max(most, Total(peak));
    }
    SetCapacity(problem, Bytes(1 + most.value * roll(30, 100) / 100));
    for (const char* strategy : {"l2l", "weight_offload"}) {
      const auto planned = PlanWith(strategy, problem);
      if (!planned.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(planned.status())) << planned.status();
        continue;
      }
      ++fits;
      EXPECT_EQ(ValidateSchedule(planned->schedule, SchedulePurpose::kTraining, planned->memory),
                absl::OkStatus())
          << strategy << " " << seed;
      for (const MemoryByKind& peak : planned->simulated.peak) {
        EXPECT_LE(Total(peak), problem.capacity[0]) << strategy << " " << seed;
      }
      for (int worker = 0; worker < 2; ++worker) {
        EXPECT_EQ(WeightsAtTheEnd(*planned, worker), WeightsThatStay(problem, *planned, worker))
            << strategy << " " << seed;
      }
    }
  }
  EXPECT_GT(fits, 25);
}

}  // namespace
}  // namespace siphon
