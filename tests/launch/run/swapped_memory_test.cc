// Plans that park tensors against reality: no worker ever holds more than its capacity, with
// what others park there, and what was predicted is close. Two or three shapes under every
// schedule that runs live; SIPHON_TEST_ALL=1 takes all.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/state_swaps.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "tests/launch/run/tight_memory.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"

namespace siphon {
namespace {

class SwappedMemory : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

TEST_P(SwappedMemory, StaysWithinItsCapacity) {
  const auto parks = [](const PreparedJob& prepared) { return !prepared.parking.empty(); };
  ExpectWithinCapacities(GetParam(), {{"d2d_swap", parks}, {"host_swap", parks}});
}

TEST_P(SwappedMemory, StaysWithinItsCapacityWithStateAway) {
  const auto moves_state = [](const PreparedJob& prepared) {
    if (!HomeGroupsOf(prepared.plan.training, prepared.plan.memory).empty()) return true;
    for (size_t stage = 0; stage < prepared.plan.memory.stages.size(); ++stage) {
      const StageId id(static_cast<int>(stage));
      if (!StateGroupsAway(prepared.plan.memory, {}, id).empty()) return true;
    }
    return false;
  };
  ExpectWithinCapacities(GetParam(), {{"weight_offload", moves_state},
                                      {"l2l", moves_state},
                                      {"optimizer_offload", moves_state},
                                      {"host_swap", moves_state},
                                      {"auto", moves_state}});
}

TEST_P(SwappedMemory, StaysWithinItsCapacityBesideWhatIsNotTakenYet) {
  const auto parks = [](const PreparedJob& prepared) { return !prepared.parking.empty(); };
  ExpectWithinCapacities(GetParam(),
                         {{.name = "host_swap", .lets_leave = parks, .transport = "mpi"}});
}

class SwappedMemoryOfSmallShapes : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

// Tensors of less than a cache line leave too where their plan says so.
TEST_F(SwappedMemoryOfSmallShapes, StaysWithinItsCapacity) {
  const auto leaves = [](const PreparedJob& prepared) {
    return !prepared.plan.memory.stages.empty();
  };
  constexpr double kMost = 100;
  const std::vector<TightStrategy> strategies = {{"host_swap", leaves, 0, kMost},
                                                 {"vdnn", leaves, 0, kMost},
                                                 {"recompute", leaves, -0.1, kMost},
                                                 {"auto", leaves, -0.1, kMost}};
  const std::vector<MemoryShape> shapes = SmallMemoryShapes();
  for (size_t strategy = 0; strategy < strategies.size(); ++strategy) {
    int left = 0;
    for (size_t shape = 0; shape < shapes.size(); ++shape) {
      // Every third, of each model, and others for the next strategy.
      if ((shape + shape / 3 + strategy) % 3 != 0 && !TakesAllCases()) continue;
      if (ExpectWithinCapacities(MemoryCase{shapes[shape], "gpipe"}, strategies[strategy])) ++left;
    }
    EXPECT_GT(left, 0) << strategies[strategy].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, SwappedMemory, testing::ValuesIn(TightScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
