#include "planner/drafts/maps/map_steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/maps/way_graph.h"
#include "tests/planner/drafts/draft_dice.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/planner/drafts/uneven_server.h"
#include "tests/planner/random_problem.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

constexpr Nanos kWhenever(int64_t{1} << 60);

std::optional<MapSteps> StepsOf(const PlanningProblem& problem, const DraftPlan& draft) {
  const auto graph = MakeWayGraph(problem, draft);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return MapSteps::Of(problem, draft, *graph);
}

// Of all maps of a draft.
struct Compared {
  int maps = 0;
  int alike = 0;  // to one before
};

Compared Compare(const PlanningProblem& problem, DraftPlan draft, const std::string& what) {
  std::optional<MapSteps> steps = StepsOf(problem, draft);
  Compared compared;
  if (!steps) return compared;
  DraftSimulator simulator(problem);
  std::map<std::vector<int64_t>, Nanos> of_key;
  for (const DeviceMapping& map :
       EveryMap(WorkerCount(problem.schedule), DeviceCount(problem.topology))) {
    draft.mapping = map;
    const auto simulated = simulator.Run(draft);
    if (!simulated.ok()) continue;
    const Nanos step = simulated->simulated.step_time;
    EXPECT_EQ(steps->StepWithin(map.device_of_worker, kWhenever), step) << what;
    EXPECT_EQ(steps->StepWithin(map.device_of_worker, step), step) << what;
    EXPECT_EQ(steps->StepWithin(map.device_of_worker, step - Nanos(1)), std::nullopt) << what;
    const auto [known, is_new] = of_key.try_emplace(steps->KeyOf(map.device_of_worker), step);
    EXPECT_EQ(known->second, step) << "of a map that is alike" << what;
    ++compared.maps;
    if (!is_new) ++compared.alike;
  }
  return compared;
}

TEST(MapSteps, AreThoseOfTheSimulator) {
  constexpr int kPart = kSanitized ? 5 : 1;
  Compared all;
  int with_queue = 0;
  for (uint32_t seed = 1; seed <= 600 / kPart; ++seed) {
    Dice dice(seed);
    PlanningProblem problem = RandomProblem(dice);
    const int workers = WorkerCount(problem.schedule);
    if (workers > 4 || problem.schedule.replicas > 1) continue;
    if (DeviceCount(problem.topology) == 0) continue;
    problem.cores = {};
    if (seed % 2 == 0) problem.lending = LendingRule::kPeaks;
    SetCapacity(problem, Bytes(dice.Roll(50'000, 400'000)));
    DraftPlan draft = KeepingDraft(problem);
    DraftDice changes(seed);
    for (int change = 0; change < 20; ++change) changes.Change(draft);
    if (seed % 3 == 0) PutStepOnHost(draft.stages[seed % draft.stages.size()]);
    draft = Replace(draft, Placement::kPeerSwap, Placement::kHostSwap, Placement::kHostSwap);
    const Compared compared = Compare(problem, draft, absl::StrCat(" seed ", seed));
    all.maps += compared.maps;
    all.alike += compared.alike;
    for (const StageDraft& stage : draft.stages) {
      with_queue += compared.maps > 0 && stage.update == UpdatePlace::kHost ? 1 : 0;
    }
  }
  EXPECT_GT(all.maps, 1'000 / kPart);
  EXPECT_GT(all.alike, 50 / kPart);
  EXPECT_GT(with_queue, 20 / kPart);
}

TEST(MapSteps, AreNotKnownWithLendersOrSharedCores) {
  PlanningProblem problem = ThreeWorkers(UnevenServer(1));
  EXPECT_FALSE(StepsOf(problem, MixedDraft(problem)).has_value());
  const DraftPlan kept = KeepingDraft(problem);
  EXPECT_TRUE(StepsOf(problem, kept).has_value());
  problem.cores = {1000, 1900};
  EXPECT_FALSE(StepsOf(problem, kept).has_value());
}

// Without a way to the host, not every two devices need to reach each other.
TEST(MapSteps, AreNotKnownWhereAMapHasNoWay) {
  Topology topology = UnevenServer(1);
  topology.switches.clear();
  topology.links.pop_back();
  const PlanningProblem problem = ThreeWorkers(topology);
  EXPECT_FALSE(StepsOf(problem, KeepingDraft(problem)).has_value());
}

}  // namespace
}  // namespace siphon
