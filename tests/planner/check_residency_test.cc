#include "planner/check_residency.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

std::string Residency(absl::string_view text) {
  const absl::Status status = CheckResidency(ParsedSchedule(text));
  return status.ok() ? "resident" : std::string(status.message());
}

TEST(CheckResidency, FollowsActivationsOutAndBackIn) {
  EXPECT_EQ(Residency("0F0 0SWAP_OUT0 0F1 0SWAP_OUT_END0 0B1 0SWAP_IN0 0SWAP_IN_END0 0B0"),
            "resident");
  EXPECT_EQ(Residency("0F0 0DROP0 0F1 0B1 0RECOMPUTE0 0I0 0W0"), "resident");
}

TEST(CheckResidency, NamesTheUseOfActivationsThatAreAway) {
  EXPECT_EQ(Residency("0F0 0SWAP_OUT0 0SWAP_OUT_END0 0B0"),
            "worker 0 has 0B0, which needs the activations of stage 0, microbatch 0 resident, but "
            "they are away since 0SWAP_OUT_END0\n"
            "worker 0: 0F0 0SWAP_OUT0 0SWAP_OUT_END0 0B0 <-- here");
  EXPECT_EQ(Residency("0F0 0F1\n1F0 1SWAP_OUT0 1SWAP_OUT_END0 1SWAP_IN0 1B0"),
            "worker 1 has 1B0, which needs the activations of stage 1, microbatch 0 resident, but "
            "they are on their way in since 1SWAP_IN0\n"
            "worker 0: 0F0 0F1\n"
            "worker 1: 1F0 1SWAP_OUT0 1SWAP_OUT_END0 1SWAP_IN0 1B0 <-- here");
  EXPECT_EQ(Residency("0F0 0DROP0 0I0 0W0"),
            "worker 0 has 0I0, which needs the activations of stage 0, microbatch 0 resident, but "
            "they are dropped since 0DROP0\n"
            "worker 0: 0F0 0DROP0 0I0 <-- here 0W0");
}

TEST(CheckResidency, NamesMovesThatMakeNoSense) {
  EXPECT_EQ(Residency("0SWAP_OUT0 0F0 0B0"),
            "worker 0 has 0SWAP_OUT0, which needs the activations of stage 0, microbatch 0 "
            "resident, but they are not there\n"
            "worker 0: 0SWAP_OUT0 <-- here 0F0 0B0");
  EXPECT_EQ(Residency("0F0 0B0 0DROP0"),
            "worker 0 has 0DROP0, which needs the activations of stage 0, microbatch 0 resident, "
            "but they are not there since 0B0\n"
            "worker 0: 0F0 0B0 0DROP0 <-- here");
  EXPECT_EQ(Residency("0F0 0SWAP_OUT0"),
            "worker 0 has 0SWAP_OUT0, but nothing brings the activations back: at the end of the "
            "program they are on their way out\n"
            "worker 0: 0F0 0SWAP_OUT0 <-- here");
}

TEST(CheckLiveActivations, NamesTheForwardBeyondAWorkersLimit) {
  const Schedule schedule = ParsedSchedule("0F0 0F1 0B0 0F2 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2");
  EXPECT_TRUE(CheckLiveActivations(schedule, {2, 1}).ok());
  EXPECT_EQ(CheckLiveActivations(schedule, {1, 1}).message(),
            "worker 0 keeps the activations of 2 microbatches from 0F1 on; its limit is 1\n"
            "worker 0: 0F0 0F1 <-- here 0B0 0F2 0B1 0B2\n"
            "worker 1: 1F0 1B0 1F1 1B1 1F2 1B2");
}

TEST(CheckLiveActivations, CountsBothMembersOfACompoundCell) {
  const Schedule schedule = ParsedSchedule("0F0 (0B0;0F1)OVERLAP_F_B 0B1");
  EXPECT_TRUE(CheckLiveActivations(schedule, {2}).ok());
  EXPECT_EQ(CheckLiveActivations(schedule, {1}).message(),
            "worker 0 keeps the activations of 2 microbatches from 0F1 on; its limit is 1\n"
            "worker 0: 0F0 0B0 0F1 <-- here 0B1");
}

}  // namespace
}  // namespace siphon
