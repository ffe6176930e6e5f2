#include "planner/second_choices/spare_lending.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "planner/round_up.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/simulator/simulate.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Three workers on a line of links 0 - 1 - 2 with these bytes left.
class SpareLendingTest : public testing::Test {
 protected:
  SpareLendingTest() {
    for (const auto& [from, to] : {std::pair(0, 1), {1, 0}, {1, 2}, {2, 1}}) {
      topology_.links.push_back(
          {.from = DeviceId(from), .to = DeviceId(to), .rate = BytesPerSecond(1000)});
    }
    topology_.devices.resize(3);
  }
  SpareLending Spare(const std::vector<Bytes>& left, Bytes granule = kCacheLine) const {
    const std::vector<Bytes> peak(3, Bytes(5000));
    std::vector<Bytes> capacity;
    for (const Bytes bytes : left) capacity.push_back(bytes + Bytes(5000));
    return {topology_, IdentityMapping(3), capacity, peak, granule};
  }
  Topology topology_;
};

TEST_F(SpareLendingTest, GivesWhatLinkedLendersHaveLeft) {
  SpareLending spare = Spare({Bytes(10'000), Bytes(1128), Bytes(10'000)});
  // Worker 0 is linked with worker 1 alone, which has 1,000 bytes beside what rounding may take.
  EXPECT_EQ(spare.Place(WorkerId(0), Bytes(1001), 1), std::nullopt);
  EXPECT_EQ(spare.Place(WorkerId(0), Bytes(500), 2), std::nullopt);
  const auto stripes = spare.Place(WorkerId(0), Bytes(400), 2);
  ASSERT_TRUE(stripes.has_value());
  EXPECT_EQ(*stripes, (std::vector<Stripe>{{DeviceId(1), Bytes(400)}}));
  // Twice 448 bytes are gone.
  EXPECT_EQ(spare.Place(WorkerId(0), Bytes(200), 1), std::nullopt);
  // Worker 1 has two lenders, with as much each.
  const auto both = spare.Place(WorkerId(1), Bytes(12'800), 1);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(*both, (std::vector<Stripe>{{DeviceId(0), Bytes(6400)}, {DeviceId(2), Bytes(6400)}}));
}

// Once for each owner: its stripes lie one behind the other.
TEST_F(SpareLendingTest, LeavesRoomForTheLastGranuleOfWhatIsSetAside) {
  SpareLending spare = Spare({Bytes(0), Bytes(10'000 + 2 * 128), Bytes(0)}, Bytes(4096));
  EXPECT_EQ(spare.Place(WorkerId(0), Bytes(7'000), 1), std::nullopt);
  EXPECT_TRUE(spare.Place(WorkerId(0), Bytes(4'000), 1).has_value());
  EXPECT_TRUE(spare.Place(WorkerId(0), Bytes(1'900), 1).has_value());
  EXPECT_EQ(spare.Place(WorkerId(2), Bytes(100), 1), std::nullopt);
}

// The second worker has room for all that the first one has with the host, and no drive is there.
TEST(SecondChoices, OfWeightsGoToLendersWithRoom) {
  PlanningProblem problem = TwoFullWorkers(Bytes(900));
  problem.capacity = {Bytes(900), Bytes(10'000)};
  for (const char* name : {"host_swap", "weight_offload"}) {
    const auto planned = FindMemoryStrategy(name)->plan(problem);
    ASSERT_TRUE(planned.ok()) << name << planned.status();
    int swapped = 0;
    for (const PlannedGroup& group : planned->memory.stages[0].groups) {
      if (!IsSwap(group.choice.placement) || IsPassing(group.group.kind)) continue;
      ++swapped;
      EXPECT_EQ(group.choice.second_choice, Placement::kPeerSwap) << name;
    }
    EXPECT_GT(swapped, 0) << name;
  }
  // Taken at once they fit, with their program as it is.
  const auto planned = FindMemoryStrategy("host_swap")->plan(problem).value();
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : planned.simulated.peak) peaks.push_back(Total(peak));
  SpareLending spare(problem.topology, planned.mapping, problem.capacity, peaks, problem.granule);
  SecondStripes stripes;
  const std::vector<PlannedGroup>& groups = planned.memory.stages[0].groups;
  for (size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].choice.second_choice != Placement::kPeerSwap) continue;
    const auto placed = spare.Place(WorkerId(0), groups[group].group.bytes, 1);
    ASSERT_TRUE(placed.has_value());
    stripes[{StageId(0), GroupId(static_cast<int>(group))}] = *placed;
  }
  const auto taken = TakeSecondChoices(
      {planned.memory, planned.schedule},
      [](StageId, const PlannedGroup& group) {
        return group.choice.second_choice == Placement::kPeerSwap;
      },
      stripes);
  ASSERT_TRUE(taken.ok()) << taken.status();
  const auto step =
      Simulate(SimulationOf(problem, planned.mapping, taken->memory, taken->schedule));
  EXPECT_TRUE(step.ok()) << step.status();
  problem.capacity[1] = Bytes(1'290);
  const auto full = FindMemoryStrategy("host_swap")->plan(problem);
  ASSERT_TRUE(full.ok()) << full.status();
  for (const PlannedGroup& group : full->memory.stages[0].groups) {
    if (IsPassing(group.group.kind)) continue;
    EXPECT_EQ(group.choice.second_choice, Placement::kKeep);
  }
}

}  // namespace
}  // namespace siphon
