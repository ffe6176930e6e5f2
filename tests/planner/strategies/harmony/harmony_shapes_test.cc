#include "planner/strategies/harmony/harmony_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

PlanningProblem LikeLayers(int layers, int workers, int microbatches) {
  return ProblemOf({.forward = Nanos(100), .input_backward = Nanos(200), .parameters = Bytes(100)},
                   layers, LoweredSchedule("1f1b", workers, microbatches), {});
}

using Groups = std::set<std::pair<int, int>>;  // forward and backward

Groups GroupsOf(const std::vector<HarmonyChoice>& choices, int chunks, int forward_pack,
                int backward_pack) {
  Groups groups;
  for (const HarmonyChoice& choice : choices) {
    const ScheduleOptions& options = choice.shape.options;
    if (choice.shape.chunks != chunks || options.forward_pack != forward_pack ||
        options.backward_pack != backward_pack) {
      continue;
    }
    groups.emplace(options.microbatch_group, options.backward_group);
  }
  return groups;
}

// Two stages a worker. Where both are one pack, microbatches go through it one by one, whatever
// their groups.
TEST(HarmonyShapes, HaveGroupsForwardAndBackwardApart) {
  const PlanningProblem problem = LikeLayers(4, 2, 4);
  const std::vector<HarmonyChoice> choices = HarmonyShapes(problem).Listed();
  EXPECT_EQ(GroupsOf(choices, 1, 1, 1), (Groups{{4, 4}}));
  EXPECT_EQ(GroupsOf(choices, 2, 1, 1),
            (Groups{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {2, 4}, {4, 1}, {4, 2}, {4, 4}}));
  EXPECT_EQ(GroupsOf(choices, 2, 2, 1), (Groups{{4, 1}, {4, 2}, {4, 4}}));
  EXPECT_EQ(GroupsOf(choices, 2, 1, 2), (Groups{{1, 4}, {2, 4}, {4, 4}}));
  EXPECT_EQ(GroupsOf(choices, 2, 2, 2), (Groups{{4, 4}}));
}

TEST(HarmonyShapes, HaveThemAlikeWhereThereAreMany) {
  const PlanningProblem problem = LikeLayers(32, 2, 32);
  const std::vector<HarmonyChoice> choices = HarmonyShapes(problem).Listed();
  EXPECT_EQ(GroupsOf(choices, 8, 2, 1),
            (Groups{{1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}}));
  EXPECT_EQ(GroupsOf(choices, 8, 8, 1).size(), 6u);  // one forward, all backward
}

TEST(HarmonyShapes, GrowOneGroupAtATime) {
  const PlanningProblem problem = LikeLayers(32, 2, 32);
  HarmonyShapes shapes(problem);
  HarmonyChoice choice{.shape = {.workers = 2,
                                 .chunks = 8,
                                 .microbatches = 32,
                                 .options = {.microbatch_group = 8, .backward_group = 16}}};
  choice.partition = HarmonyCutter(problem.profile, {.count = 2}).ByTime(16);
  const std::vector<HarmonyChoice> larger = shapes.WithLargerGroup(choice);
  EXPECT_EQ(GroupsOf(larger, 8, 1, 1), (Groups{{16, 16}, {32, 16}, {8, 32}}));
  EXPECT_TRUE(std::any_of(larger.begin(), larger.end(), [&](const HarmonyChoice& other) {
    return other.partition == choice.partition;
  }));
  choice.shape.options.microbatch_group = choice.shape.options.backward_group = 32;
  EXPECT_TRUE(shapes.WithLargerGroup(choice).empty());
}

}  // namespace
}  // namespace siphon
