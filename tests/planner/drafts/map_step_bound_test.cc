#include "planner/drafts/maps/map_step_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/mapping/parking_bound.h"
#include "planner/mapping/swap_fabric.h"
#include "tests/planner/drafts/draft_dice.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/random_problem.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

bool AllHaveLenders(const DraftSimulator& simulator, const DraftPlan& draft) {
  for (size_t worker = 0; worker < draft.lenders.size(); ++worker) {
    const bool gives = simulator.ParkedBy(draft, static_cast<int>(worker)) > Bytes(0);
    if (gives && draft.lenders[worker].empty()) return false;
  }
  return true;
}

// Of four workers at most, with devices; none where the dice have more of them, or no topology.
std::optional<PlanningProblem> ProblemOfFew(uint32_t seed, bool on_servers) {
  Dice dice(seed);
  PlanningProblem problem = RandomProblem(dice);
  if (on_servers) problem = OnServers(std::move(problem), dice);
  if (WorkerCount(problem.schedule) > 4 || DeviceCount(problem.topology) == 0) return std::nullopt;
  problem.granule = Bytes(dice.Roll(1, 300));
  SetCapacity(problem, Bytes(dice.Roll(50'000, 400'000)));
  if (seed % 2 == 0) problem.lending = LendingRule::kPeaks;
  return problem;
}

// Of all maps of a draft.
struct Compared {
  int maps = 0;
  int equal = 0;
};

Compared Compare(DraftSimulator& simulator, DraftPlan draft, const std::string& what) {
  const PlanningProblem& problem = simulator.problem();
  auto bound = MapStepBound::Of(problem, draft);
  EXPECT_TRUE(bound.ok()) << bound.status() << what;
  Compared compared;
  for (const DeviceMapping& map :
       EveryMap(WorkerCount(problem.schedule), DeviceCount(problem.topology))) {
    draft.mapping = map;
    const auto simulated = simulator.Run(draft);
    if (!simulated.ok()) continue;
    const bool all_give = AllHaveLenders(simulator, simulated->draft);
    EXPECT_TRUE(all_give || !Fits(*simulated)) << what;
    if (!all_give) continue;
    ++compared.maps;
    Nanos least;
    for (size_t placed = 0; placed <= map.device_of_worker.size(); ++placed) {
      const Nanos more =
          bound->LeastStep(absl::MakeConstSpan(map.device_of_worker).subspan(0, placed));
      EXPECT_GE(more, least) << what << ", of " << placed;
      least = more;
    }
    EXPECT_LE(least, simulated->simulated.step_time) << what;
    compared.equal += least == simulated->simulated.step_time ? 1 : 0;
  }
  return compared;
}

TEST(MapStepBound, IsBelowTheStepOnEveryMap) {
  constexpr int kPart = kSanitized ? 5 : 1;
  Compared all;
  int parked = 0;
  for (uint32_t seed = 1; seed <= 700 / kPart; ++seed) {
    const std::optional<PlanningProblem> problem = ProblemOfFew(seed, seed % 5 == 0);
    if (!problem) continue;
    DraftSimulator simulator(*problem);
    if (seed % 3 == 0) simulator.LendBy(LendingRule::kOverTime);
    DraftPlan draft = KeepingDraft(*problem);
    DraftDice changes(seed);
    for (int change = 0; change < 30; ++change) changes.Change(draft);
    const Compared compared = Compare(simulator, draft, absl::StrCat(" seed ", seed));
    all.maps += compared.maps;
    all.equal += compared.equal;
    if (compared.maps > 0 && Uses(draft, Placement::kPeerSwap)) ++parked;
  }
  EXPECT_GT(all.maps, 1'000 / kPart);
  EXPECT_GT(all.equal, 10 / kPart);
  EXPECT_GT(parked, 20 / kPart);
}

// Of all maps of a draft that only lenders take something of.
struct Bounded {
  int maps = 0;
  int full = 0;    // without room for all
  int missed = 0;  // the bound knows
  int longer = 0;  // the bound is, for what lenders have room for
};

// With what is known of its demand on any map.
Bounded CompareDemand(DraftSimulator& simulator, DraftPlan draft, const std::string& what) {
  const PlanningProblem& problem = simulator.problem();
  const auto demand = simulator.DemandOnAnyMap(draft);
  EXPECT_TRUE(demand.ok()) << demand.status() << what;
  Bounded bounded;
  if (!demand->has_value()) return bounded;
  const SwapFabric fabric = MakeSwapFabric(problem.topology);
  const ParkingBound room(fabric, **demand);
  auto all_lend = MapStepBound::Of(problem, draft);
  auto bound = all_lend;
  bound->LendOnly(**demand);
  for (const DeviceMapping& map :
       EveryMap(WorkerCount(problem.schedule), DeviceCount(problem.topology))) {
    draft.mapping = map;
    const auto simulated = simulator.Run(draft);
    if (!simulated.ok()) continue;
    ++bounded.maps;
    bounded.full += Fits(*simulated) ? 0 : 1;
    Nanos least;
    Nanos with_all;
    Bytes missing;
    for (size_t placed = 0; placed <= map.device_of_worker.size(); ++placed) {
      const auto devices = absl::MakeConstSpan(map.device_of_worker).subspan(0, placed);
      const Bytes no_room = room.UnparkedOf(devices);
      EXPECT_GE(no_room, missing) << what << ", of " << placed;
      missing = no_room;
      with_all = all_lend->LeastStep(devices);
      const Nanos more = bound->LeastStep(devices);
      EXPECT_GE(more, with_all) << what;
      if (missing == Bytes(0)) {
        EXPECT_GE(more, least) << what << ", of " << placed;
      }
      least = more;
    }
    EXPECT_LE(missing, simulated->score.excess) << what;
    bounded.missed += missing > Bytes(0) ? 1 : 0;
    if (!Fits(*simulated)) continue;
    EXPECT_LE(least, simulated->score.step) << what;
    bounded.longer += least > with_all ? 1 : 0;
  }
  return bounded;
}

TEST(MapStepBound, IsBelowTheStepWithNoMoreThanLendersHave) {
  constexpr int kPart = kSanitized ? 5 : 1;
  Bounded all;
  for (uint32_t seed = 1; seed <= 700 / kPart; ++seed) {
    const std::optional<PlanningProblem> problem = ProblemOfFew(seed, false);
    if (!problem) continue;
    DraftSimulator simulator(*problem);
    DraftPlan draft = KeepingDraft(*problem);
    DraftDice changes(seed);
    for (int change = 0; change < 30; ++change) changes.Change(draft);
    draft = Replace(std::move(draft), Placement::kHostSwap, Placement::kPeerSwap,
                    seed % 4 == 0 ? Placement::kPeerSwap : Placement::kKeep);
    for (StageDraft& stage : draft.stages) stage.update = UpdatePlace::kDevice;
    const Bounded some = CompareDemand(simulator, draft, absl::StrCat(" seed ", seed));
    all.maps += some.maps;
    all.full += some.full;
    all.missed += some.missed;
    all.longer += some.longer;
  }
  EXPECT_GT(all.maps, 1'000 / kPart);
  EXPECT_GT(all.full - all.missed, 10 / kPart);
  EXPECT_GT(all.missed, 100 / kPart);
  EXPECT_GT(all.longer, 20 / kPart);
}

// Two stages of one layer, each with F 1000, B 2000, four microbatches; all activations, 2,000
// bytes of a microbatch, go to the host at 1 GB/s and come back.
PlanningProblem TwoSwappers(int devices_per_uplink) {
  Topology topology = UniformTopology(2, BytesPerSecond(0), Nanos(0));
  topology =
      WithHost(topology, devices_per_uplink, {.to_host = kByteANano, .from_host = kByteANano});
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .boundary = Bytes(1),
                                       .saved = {{"all", Bytes(2000)}}},
                                      2, LoweredSchedule("gpipe", 2, 4), std::move(topology));
  SetCapacity(problem, Bytes(1'000'000));
  return problem;
}

Nanos LeastOf(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) stage.activations.assign(1, Placement::kHostSwap);
  const std::vector<DeviceId> placed = {DeviceId(0), DeviceId(1)};
  return MapStepBound::Of(problem, draft)->LeastStep(placed);
}

TEST(MapStepBound, IsTheStepWhereNobodySharesAnything) {
  const PlanningProblem problem = TwoSwappers(1);
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) stage.activations.assign(1, Placement::kHostSwap);
  DraftSimulator simulator(problem);
  EXPECT_EQ(LeastOf(problem), simulator.Run(draft)->simulated.step_time);
}

// Worker 0's first F ends at 1000, from when on both workers copy 8 times 2,000 bytes out of their
// one uplink; then at least one microbatch has to come back, 2000, and have its B, 2000.
TEST(MapStepBound, CountsWhatWorkersCopyOverOneUplink) {
  const Nanos together = LeastOf(TwoSwappers(2));
  EXPECT_GE(together, Nanos(1000 + 8 * 2000 + 2000 + 2000));
  EXPECT_GT(together, LeastOf(TwoSwappers(1)));
}

// One worker whose 3,000 bytes go to two lenders, at 1 and 2 GB/s: 1,000 ns out, and back.
Nanos LeastOfParking(Bytes granule) {
  Topology topology = UniformTopology(3, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) {
    link.wires = 1;
    if (link.from.value + link.to.value == 2) link.rate = kByteANano * 2;
  }
  PlanningProblem problem = ProblemOf({.forward = Nanos(10),
                                       .input_backward = Nanos(10),
                                       .weight_backward = Nanos(10),
                                       .saved = {{"all", Bytes(3000)}}},
                                      1, LoweredSchedule("gpipe", 1, 2), std::move(topology));
  problem.granule = granule;
  SetCapacity(problem, Bytes(1'000'000));
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations.assign(1, Placement::kPeerSwap);
  const std::vector<DeviceId> placed = {DeviceId(0)};
  return MapStepBound::Of(problem, draft)->LeastStep(placed);
}

// One of the microbatches leaves and comes back, while nothing is computed. In granules of 1,000
// the fast lender may have no stripe.
TEST(MapStepBound, LeavesOutWhatGranulesMayCutFromAStripe) {
  EXPECT_LE(LeastOfParking(Bytes(1)), Nanos(2 * 30 + 2 * 1000));
  EXPECT_GE(LeastOfParking(Bytes(1)), Nanos(2 * 30 + 2 * 997));
  EXPECT_EQ(LeastOfParking(Bytes(1000)), Nanos(2 * 30));
}

// Each of four stages steps on the host, all together in 40,000 ns, one after the other; the first
// can begin when a stage has had its F and B of two microbatches.
TEST(MapStepBound, CountsWhatTheHostSteps) {
  Topology topology = UniformTopology(4, BytesPerSecond(0), Nanos(0));
  topology = WithHost(topology, 1, {});
  PlanningProblem problem = ProblemOf({.forward = Nanos(100),
                                       .input_backward = Nanos(100),
                                       .weight_backward = Nanos(100),
                                       .optimizer = Nanos(100),
                                       .parameters = Bytes(100),
                                       .gradients = Bytes(100),
                                       .optimizer_state = Bytes(200),
                                       .saved = {{"all", Bytes(100)}}},
                                      4, LoweredSchedule("gpipe", 4, 2), std::move(topology));
  problem.host_step = Nanos(40'000);
  SetCapacity(problem, Bytes(1'000'000));
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) PutStepOnHost(stage);
  auto bound = MapStepBound::Of(problem, draft);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_GE(bound->LeastStep({}), Nanos(40'000 + 600));
  DraftSimulator simulator(problem);
  EXPECT_LE(bound->LeastStep({}), simulator.Run(draft)->simulated.step_time);
}

}  // namespace
}  // namespace siphon
