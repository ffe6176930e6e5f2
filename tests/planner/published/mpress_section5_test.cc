#include "planner/published/mpress_section5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/published/mpress_machines.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// As the preset grace_hopper.
Topology GraceServer() {
  Topology topology = NvswitchTopology(8, BytesPerSecond(374'400'000'000), Nanos(2'500));
  topology.name = "Grace Hopper";
  topology.device_kind = "H100";
  for (TopologyDevice& device : topology.devices) device.memory = Bytes(96'000'000'000);
  topology.host_memory = Bytes(4'096'000'000'000);
  topology.drives.assign(8, {.capacity = Bytes(2'000'000'000'000),
                             .read = BytesPerSecond(64'000'000'000),
                             .write = BytesPerSecond(60'000'000'000)});
  return WithHost(
      topology, 1,
      {.to_host = BytesPerSecond(346'000'000'000), .from_host = BytesPerSecond(346'000'000'000)});
}

absl::StatusOr<PlannedStep> TakeAMinute(const PlanningProblem&) {
  PlannedStep planned;
  planned.simulated.step_time = Nanos(60'000'000'000);
  return planned;
}
absl::StatusOr<PlannedStep> HaveNoRoom(const PlanningProblem&) {
  return absl::ResourceExhaustedError("worker 0 is too full");
}

TEST(SuperchipTopology, JoinsBothMemoriesAndPutsDrivesBehindPcie) {
  const Topology superchips = SuperchipTopology(GraceServer());
  EXPECT_TRUE(CheckTopology(superchips).ok());
  EXPECT_EQ(superchips.devices[3].memory, Bytes(608'000'000'000));
  EXPECT_EQ(superchips.host_memory, Bytes(16'000'000'000'000));
  EXPECT_THAT(superchips.drives, SizeIs(0));
  ASSERT_THAT(superchips.switches, SizeIs(8));
  EXPECT_EQ(superchips.switches[5].to_host, BytesPerSecond(60'000'000'000));
  EXPECT_EQ(superchips.switches[5].from_host, BytesPerSecond(64'000'000'000));
}

// By hand, stage 0: twelve blocks and the embeddings of 50257 words and 2048 places, 16 bytes a
// parameter: 16 * (12 * (12 h^2 + 13 h) + 52305 h) = 358.2e9; activations of eight microbatches of
// two: 8 * 12 * sbh * (34 + 5 * 96 * s / h) = 550.8e9. 909e9 in 607e9: 302e9 / 8 leave with a
// microbatch. A stage computes 3 * 12 * (24 h^2 + 4 s h) * 4096 operations in that time, at
// 989.4e12 a second at most, and at 56 % of it otherwise.
TEST(MpressProjection, DoesNotFitAndNeedsThePublishedRateAtPeak) {
  const auto ours = RunMpressProjection(
      GraceServer(), ToolsWithFloors(),
      {{"keep", "", HaveNoRoom}, {"nvme_swap", "", HaveNoRoom}, {"host_swap", "", TakeAMinute}},
      [](absl::string_view) {});
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(ours->capacity, Bytes(607'000'000'000));
  ASSERT_THAT(ours->demand, SizeIs(8));
  EXPECT_NEAR(static_cast<double>(ours->demand[0].value), 909.0e9, 2e9);
  EXPECT_NEAR(ours->recompute_share, 0.25, 0.002);
  ASSERT_THAT(ours->steps, SizeIs(2));
  constexpr double kHidden = 12'288;
  constexpr double kBlock = (24 * kHidden * kHidden + 4 * 2048 * kHidden) * 4096;
  const double slot = 3 * 12 * kBlock / 989.4e12;
  const double swapped = static_cast<double>(ours->demand[0].value - 607'000'000'000) / 8;
  // The slowest stage also has the head.
  EXPECT_NEAR(static_cast<double>(ours->steps[1].hiding.each_way.value), swapped / slot,
              0.05 * swapped / slot);
  EXPECT_NEAR(static_cast<double>(ours->steps[0].hiding.each_way.value), 0.56 * swapped / slot,
              0.05 * swapped / slot);
  // More than 140 GB/s a GPU in the paper.
  EXPECT_NEAR(static_cast<double>(ours->steps[1].hiding.together.value), 140e9, 14e9);
  EXPECT_LT(ours->steps[1].kept_step, ours->steps[0].kept_step);
  for (const ProjectedStep& step : ours->steps) EXPECT_THAT(step.runs, SizeIs(2));
  const std::string text = MpressProjectionText(*ours);
  EXPECT_THAT(text, HasSubstr("out of memory; published: out of memory"));
  // Reasons below have GiB.
  EXPECT_THAT(text, HasSubstr("607 GB (565 GiB) a device"));
  EXPECT_THAT(text, HasSubstr("Demand of the stages in GB (GiB): 909 (847), "));
  EXPECT_THAT(text, HasSubstr("worker 0 is too full"));
  EXPECT_THAT(text, HasSubstr("host_swap             60.0 s"));
}

TEST(MpressProjection, NeedsDevices) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      RunMpressProjection(Topology(), ToolsWithFloors(), {}, [](absl::string_view) {}).status()));
}

}  // namespace
}  // namespace siphon
