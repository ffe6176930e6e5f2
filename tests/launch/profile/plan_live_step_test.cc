#include "launch/profile/plan_live_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "launch/profile/moving_state.h"
#include "planner/simulator/simulate_times.h"
#include "planner/topology.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr int kWorkers = 3;
constexpr int kLayersEach = 4;

// 1F1B of six microbatches on three workers that are devices: 4 layers each, each of 1,000 bytes
// of activations, 300 of parameters, 300 of gradients, 600 of state. Worker 0 has three
// microbatches alive at once, worker 2 one.
PlanningProblem ThreeWorkers() {
  PlanningProblem problem;
  for (int layer = 0; layer < kWorkers * kLayersEach; ++layer) {
    problem.profile.layers.push_back({.name = "layer",
                                      .forward = Nanos(1000),
                                      .input_backward = Nanos(1000),
                                      .weight_backward = Nanos(1000),
                                      .parameters = Bytes(300),
                                      .gradients = Bytes(300),
                                      .optimizer_state = Bytes(600),
                                      .boundary = Bytes(100),
                                      .saved = {{.name = "x", .bytes = Bytes(1000)}}});
  }
  problem.partition.stages = {{0, 4}, {4, 8}, {8, 12}};
  problem.schedule = *ParseSchedule(
      "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0F5 0B3 0B4 0B5 0STEP\n"
      "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1F4 1B3 1F5 1B4 1B5 1STEP\n"
      "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2STEP\n");
  problem.topology = WithHost(
      UniformTopology(kWorkers, BytesPerSecond(20'000'000'000), Nanos(0)), kWorkers,
      {.to_host = BytesPerSecond(1'000'000'000), .from_host = BytesPerSecond(1'000'000'000)});
  problem.host_step = Nanos(100);
  return problem;
}

absl::StatusOr<LiveStep> Plan(const PlanningProblem& problem, const std::string& strategy) {
  return PlanLiveStep(problem, FindMemoryStrategy(strategy).value());
}

// [worker]: without anything lent.
std::vector<Bytes> OwnPeaks(const LiveStep& live) {
  PlanningProblem problem = live.problem;
  problem.held.assign(kWorkers, {});
  const auto times =
      SimulateTimes(SimulationOf(problem, live.step.mapping, live.step.memory, live.step.schedule),
                    LendingDetail::kLent);
  EXPECT_TRUE(times.ok()) << times.status();
  return OwnPeaks(times->lent);
}

std::vector<Bytes> KeptPeaks() {
  const auto kept = Plan(ThreeWorkers(), "keep");
  EXPECT_TRUE(kept.ok()) << kept.status();
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : kept->step.simulated.peak) peaks.push_back(Total(peak));
  return peaks;
}

TEST(PlanLiveStep, ParksNothingWhereEverythingFits) {
  for (const char* strategy : {"keep", "d2d_swap", "host_swap", "auto"}) {
    const auto live = Plan(ThreeWorkers(), strategy);
    ASSERT_TRUE(live.ok()) << strategy << live.status();
    EXPECT_EQ(HostBytes(live->parking), Bytes(0)) << strategy;
    for (int device = 0; device < kWorkers; ++device) {
      EXPECT_EQ(LentBytes(live->parking, DeviceId(device)), Bytes(0)) << strategy;
    }
  }
}

TEST(PlanLiveStep, LendsBesideTheLendersOwnPeak) {
  const std::vector<Bytes> kept = KeptPeaks();
  for (const int64_t percent : {99, 97, 93, 90, 87}) {
    SCOPED_TRACE(percent);
    PlanningProblem problem = ThreeWorkers();
    const Bytes capacity(kept[0].value * percent / 100);
    problem.capacity.assign(kWorkers, capacity);
    const auto live = Plan(problem, "d2d_swap");
    ASSERT_TRUE(live.ok()) << live.status();
    const std::vector<Bytes> own = OwnPeaks(*live);
    Bytes lent;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const DeviceId device = live->step.mapping.device_of_worker[worker];
      const Bytes peak = own[worker] + LentBytes(live->parking, device);
      EXPECT_LE(peak, capacity) << "worker " << worker;
      EXPECT_EQ(Total(live->step.simulated.peak[worker]), peak) << "worker " << worker;
      lent += LentBytes(live->parking, device);
    }
    EXPECT_GE(lent, kept[0] - capacity);
    EXPECT_EQ(HostBytes(live->parking), Bytes(0));
  }
}

// Every kind of tensor, and optimizer steps; with room for all that is parked.
TEST(PlanLiveStep, MovesEveryKind) {
  PlanningProblem problem = ThreeWorkers();
  for (LayerProfile& layer : problem.profile.layers) layer.saved[0].bytes = Bytes(100);
  problem.capacity.assign(kWorkers, Bytes(5000));
  std::set<GroupKind> moved;
  std::set<UpdatePlace> updates;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    SCOPED_TRACE(strategy.name);
    const auto live = PlanLiveStep(problem, strategy);
    if (!live.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(live.status()) ||
                  absl::IsInvalidArgument(live.status()))
          << live.status();
      continue;
    }
    const std::vector<Bytes> own = OwnPeaks(*live);
    for (int worker = 0; worker < kWorkers; ++worker) {
      const DeviceId device = live->step.mapping.device_of_worker[worker];
      EXPECT_LE(own[worker] + LentBytes(live->parking, device), problem.capacity[worker]);
    }
    for (const StagePlan& stage : live->step.memory.stages) {
      updates.insert(stage.update);
      for (const PlannedGroup& planned : stage.groups) {
        if (IsSwap(planned.choice.placement)) moved.insert(planned.group.kind);
      }
    }
  }
  EXPECT_EQ(moved, (std::set<GroupKind>{GroupKind::kActivations, GroupKind::kParameters,
                                        GroupKind::kGradients, GroupKind::kOptimizerState}));
  EXPECT_EQ(updates, (std::set<UpdatePlace>{UpdatePlace::kDevice, UpdatePlace::kHost}));
}

// On the host: state, a copy of the parameters and one of the gradients of four layers each.
TEST(PlanLiveStep, HasRoomForStepsOnTheHost) {
  const std::vector<Bytes> kept = KeptPeaks();
  PlanningProblem problem = ThreeWorkers();
  problem.capacity = {kept[0] - Bytes(2400), kept[1], kept[2]};
  const Bytes needed(4 * (600 + 300 + 300));
  problem.topology.host_memory = needed;
  const auto live = Plan(problem, "optimizer_offload");
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->host_steps, (std::vector<Bytes>{needed, Bytes(0), Bytes(0)}));
  EXPECT_EQ(Total(live->step.simulated.peak[0]), problem.capacity[0]);

  problem.topology.host_memory = needed - Bytes(1);
  const auto refused = Plan(problem, "optimizer_offload");
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("on the host, which has room for"));
}

// Weights and gradients that are parked with the host have no copies there besides.
TEST(HostStepBytes, CountsWhatIsParkedOnce) {
  const PlanningProblem problem = ThreeWorkers();
  MemoryPlan plan;
  plan.stages.resize(kWorkers);
  EXPECT_EQ(HostStepBytes(problem, plan), std::vector<Bytes>(kWorkers));
  plan.stages[1].update = UpdatePlace::kHost;
  const auto parked = [](GroupKind kind, Placement placement, int layers) {
    return PlannedGroup{
        .group = {.kind = kind, .layers = {4, 4 + layers}, .bytes = Bytes(300 * layers)},
        .choice = {.placement = placement}};
  };
  plan.stages[1].groups = {parked(GroupKind::kParameters, Placement::kHostSwap, 3),
                           parked(GroupKind::kGradients, Placement::kHostSwap, 1),
                           parked(GroupKind::kGradients, Placement::kPeerSwap, 1)};
  EXPECT_EQ(HostStepBytes(problem, plan)[1], Bytes(4800 - 900 - 300));

  // What several layers use is held, and copied all the same.
  PlanningProblem tied = problem;
  tied.held.resize(kWorkers);
  tied.held[1][MemoryKind::kParameters] = Bytes(50);
  tied.held[1][MemoryKind::kGradients] = Bytes(70);
  tied.held[1][MemoryKind::kCommunication] = Bytes(1000);
  EXPECT_EQ(HostStepBytes(tied, plan)[1], Bytes(4800 - 900 - 300 + 120));
}

// What a worker takes for the gradients of others at a step's end counts from there on.
TEST(PlanLiveStep, HasRoomForSharedGradients) {
  PlanningProblem problem = ThreeWorkers();
  problem.schedule = *ParseSchedule(
      "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0F5 0B3 0B4 0B5 0REDUCE_GRAD 0STEP\n"
      "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1F4 1B3 1F5 1B4 1B5 1STEP\n"
      "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2REDUCE_GRAD 2STEP\n");
  // The moment at which the last B ends still has its last layer's activations and its input.
  const Bytes state(4 * 1200 + 1000 + 100);
  const MemoryStrategy keep = FindMemoryStrategy("keep").value();
  const auto alone = PlanLiveStep(problem, keep);
  ASSERT_TRUE(alone.ok()) << alone.status();
  const Bytes peak = Total(alone->step.simulated.peak[2]);
  const auto with = [&](Bytes shared) {
    const auto live = PlanLiveStep(problem, keep, {shared, shared, shared});
    EXPECT_TRUE(live.ok()) << live.status();
    return live.ok() ? Total(live->step.simulated.peak[2]) : Bytes(0);
  };
  EXPECT_EQ(with(peak - state), peak);
  EXPECT_EQ(with(peak - state + Bytes(100)), peak + Bytes(100));
  problem.capacity.assign(kWorkers, Bytes(100'000));
  const auto refused = PlanLiveStep(problem, keep, {Bytes(0), Bytes(0), Bytes(96'000)});
  EXPECT_THAT(refused.status().message(), HasSubstr("worker 2 needs"));
}

TEST(PlanLiveStep, NeverParksMoreWithTheHostThanItHas) {
  const std::vector<Bytes> kept = KeptPeaks();
  PlanningProblem problem = ThreeWorkers();
  problem.capacity.assign(kWorkers, Bytes(kept[0].value * 9 / 10));
  const auto ample = Plan(problem, "host_swap");
  ASSERT_TRUE(ample.ok()) << ample.status();
  const Bytes parked = HostBytes(ample->parking);
  ASSERT_GE(parked, kept[0] - problem.capacity[0]);
  int planned = 0;
  for (Bytes room = parked * 8; room > Bytes(10); room = Bytes(room.value * 3 / 4)) {
    problem.topology.host_memory = room;
    const auto live = Plan(problem, "host_swap");
    if (live.ok()) {
      ++planned;
      EXPECT_LE(HostBytes(live->parking), room);
      EXPECT_GE(room, kept[0] - problem.capacity[0]);
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(live.status())) << live.status();
    }
  }
  EXPECT_GE(planned, 1);
}

// Whose blocks are larger than what most groups of this problem have.
TEST(PlanLiveStep, NeverParksMoreOnTheDriveThanItHas) {
  const std::vector<Bytes> kept = KeptPeaks();
  PlanningProblem problem = ThreeWorkers();
  problem.capacity.assign(kWorkers, Bytes(kept[0].value * 9 / 10));
  const BytesPerSecond rate(1'000'000'000);
  problem.topology.drives = {{.read = rate, .write = rate}};
  const auto ample = Plan(problem, "nvme_swap");
  ASSERT_TRUE(ample.ok()) << ample.status();
  const Bytes parked = DriveBytes(ample->parking);
  ASSERT_GE(parked, kept[0] - problem.capacity[0]);
  int planned = 0;
  int refused = 0;
  for (Bytes room = parked * 8; room > Bytes(10); room = Bytes(room.value * 3 / 4)) {
    problem.topology.drives[0].capacity = room;
    const auto live = Plan(problem, "nvme_swap");
    if (live.ok()) {
      ++planned;
      EXPECT_LE(DriveBytes(live->parking), room);
    } else {
      ++refused;
      EXPECT_TRUE(absl::IsResourceExhausted(live.status())) << live.status();
    }
  }
  EXPECT_GE(planned, 1);
  EXPECT_GE(refused, 1);
}

// 64 KiB of buffers for each worker that parks there, however little that is.
TEST(PlanLiveStep, CountsTheBuffersOfDrivesAsMemoryOfTheHost) {
  const std::vector<Bytes> kept = KeptPeaks();
  PlanningProblem problem = ThreeWorkers();
  problem.capacity.assign(kWorkers, Bytes(kept[0].value * 9 / 10));
  const BytesPerSecond rate(1'000'000'000);
  problem.topology.drives = {{.read = rate, .write = rate}};
  const auto ample = Plan(problem, "nvme_swap");
  ASSERT_TRUE(ample.ok()) << ample.status();
  int64_t with_drive = 0;
  for (const WorkerParking& worker : ample->parking) with_drive += worker.bytes.empty() ? 0 : 1;
  ASSERT_GE(with_drive, 1);
  problem.topology.host_memory = Bytes(with_drive * (64 << 10));
  const auto enough = Plan(problem, "nvme_swap");
  EXPECT_TRUE(enough.ok()) << enough.status();
  problem.topology.host_memory -= Bytes(1);
  const auto refused = Plan(problem, "nvme_swap");
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              testing::ContainsRegex("the workers have [0-9.]+ KiB on the host, which has room"));
}

// A strategy whose shortest step keeps everything, and whose first plan that fits steps on the
// host.
absl::StatusOr<PlannedStep> KeepOrAnyThatFits(const PlanningProblem& problem) {
  const bool any = problem.goal == PlanningGoal::kAnyThatFits;
  return FindMemoryStrategy(any ? "optimizer_offload" : "keep")->plan(problem);
}

// As much as keeping everything takes, but for a byte of shared gradients at the end.
TEST(PlanLiveStep, TakesAnyThatFitsWhereTheShortestStepHasNoRoom) {
  const std::vector<Bytes> kept = KeptPeaks();
  PlanningProblem problem = ThreeWorkers();
  problem.capacity.assign(kWorkers, kept[0]);
  problem.schedule.programs[0].insert(
      std::prev(problem.schedule.programs[0].end()),
      Action{.stage = StageId(0), .kind = ActionKind::kReduceGradient});
  const MemoryStrategy strategy{.name = "both", .plan = KeepOrAnyThatFits};
  const Bytes state(4 * 1200 + 1000 + 100);
  const auto with = [&](Bytes shared) {
    return PlanLiveStep(problem, strategy, {shared, Bytes(0), Bytes(0)});
  };
  const auto shortest = with(kept[0] - state);
  ASSERT_TRUE(shortest.ok()) << shortest.status();
  EXPECT_EQ(shortest->step.memory.stages[0].update, UpdatePlace::kDevice);
  const auto any = with(kept[0] - state + Bytes(1));
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_EQ(any->step.memory.stages[0].update, UpdatePlace::kHost);
}

TEST(PlanLiveStep, IsRefusedWhereNobodyHasRoom) {
  const std::vector<Bytes> kept = KeptPeaks();
  PlanningProblem problem = ThreeWorkers();
  problem.capacity = {Bytes(kept[0].value * 8 / 10), kept[1], kept[2]};
  const auto live = Plan(problem, "d2d_swap");
  EXPECT_TRUE(absl::IsResourceExhausted(live.status())) << live.status();
  EXPECT_THAT(std::string(live.status().message()), HasSubstr("worker 0"));
}

}  // namespace
}  // namespace siphon
