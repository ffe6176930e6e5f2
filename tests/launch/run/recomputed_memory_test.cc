// Plans that compute activations again against reality: no worker's books ever count more than its
// capacity, and what was predicted is close. Four or five shapes under every schedule that runs
// live; SIPHON_TEST_ALL=1 takes all.

#include <gtest/gtest.h>

#include <string>

#include "pipeline/torch/counting_allocator.h"
#include "tests/launch/run/tight_memory.h"
#include "tests/pipeline/live_schedules.h"

namespace siphon {
namespace {

class RecomputedMemory : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

TEST_P(RecomputedMemory, StaysWithinItsCapacity) {
  const auto recomputes = [](const PreparedJob& prepared) {
    return !prepared.plan.memory.stages.empty();
  };
  ExpectWithinCapacities(GetParam(), {{"recompute", recomputes, -0.1}});
}

// With layers that are computed again before their backward, and some microbatches that stay.
using RecomputedMemoryOfAuto = RecomputedMemory;
TEST_P(RecomputedMemoryOfAuto, StaysWithinItsCapacity) {
  const auto leaves = [](const PreparedJob& prepared) {
    return !prepared.plan.memory.stages.empty();
  };
  ExpectWithinCapacities(GetParam(), {{"auto", leaves, -0.1}});
}

INSTANTIATE_TEST_SUITE_P(Schedules, RecomputedMemory, testing::ValuesIn(TightScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Schedules, RecomputedMemoryOfAuto,
                         testing::Values("gpipe", "1f1b", "interleaved_1f1b"),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
