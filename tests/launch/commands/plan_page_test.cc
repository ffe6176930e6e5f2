#include "launch/commands/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "planner/placement_bytes.h"
#include "tests/launch/commands/plan_fixture.h"

namespace siphon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

TEST_F(PlanCommand, ShowsTheSmallestChangesOnThePageOfAMisfit) {
  const std::string job = Write(kSmallJob);
  const CommandEnd end = Run({job, "--set", Capacity(job, 60), "--strategy", "keep", "--report",
                              absl::StrCat(directory_, "/plan.html")});
  EXPECT_EQ(end.code, kExitDoesNotFit) << end.err;
  const std::string page = FileText("plan.html");
  EXPECT_THAT(page, HasSubstr("smallest changes that fit"));
  EXPECT_THAT(page, HasSubstr("--set memory.strategy=auto"));
}

// Two workers on a server of three, of which the third holds what they park.
TEST_F(PlanCommand, ShowsWhatIdleLendersHold) {
  auto studied = StudyPlan({.job = {.job = Write(kSmallJob)}, .strategy = "keep"});
  ASSERT_TRUE(studied.ok()) << studied.status();
  studied->problem.topology = UniformTopology(3, BytesPerSecond(1'000'000), Nanos(0));
  studied->problem.topology.devices[2].memory = Bytes(4 << 20);
  studied->step->other_peaks = {{"device 2", Bytes(1 << 20)}};
  const LinkGraph graph = LinkGraphOf(*studied);
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_THAT(graph.nodes[2].lines, ElementsAre("no worker", "holds 1.00 MiB", "of 4.00 MiB"));
  EXPECT_DOUBLE_EQ(graph.nodes[2].filled, 0.25);
  studied->step->other_peaks.clear();
  EXPECT_EQ(LinkGraphOf(*studied).nodes[2].lines[1], "holds nothing");
}

// What is on a drive is drawn with it, and said for programs.
TEST_F(PlanCommand, ShowsWhatDrivesHoldOnThePage) {
  const std::string job = Write(kSmallJob);
  auto studied =
      StudyPlan({.job = {.job = job, .overrides = {Capacity(job, 80)}}, .strategy = "nvme_swap"});
  ASSERT_TRUE(studied.ok()) << studied.status();
  ASSERT_EQ(studied->step->other_peaks.size(), 1u);
  const Bytes held = studied->step->other_peaks[0].bytes;
  studied->problem.topology.drives[0].capacity = held * 4;
  const LinkGraph graph = LinkGraphOf(*studied);
  const LinkGraphNode& drive = graph.nodes.back();
  EXPECT_EQ(drive.name, "drive 0");
  EXPECT_THAT(drive.lines, ElementsAre(absl::StrCat("holds ", FormatBytes(held)),
                                       absl::StrCat("of ", FormatBytes(held * 4))));
  EXPECT_DOUBLE_EQ(drive.filled, 0.25);
  Bytes sent;
  int links = 0;
  for (const PlacementBytes& stage : BytesByPlacement(studied->plan)) {
    const Bytes bytes = stage[static_cast<size_t>(Placement::kNvmeSwap)];
    sent += bytes;
    if (bytes == Bytes(0)) continue;
    EXPECT_THAT(graph.links, Contains(Field(&GraphLink::label, FormatBytes(bytes))));
    ++links;
  }
  EXPECT_GT(sent, Bytes(0));
  const int node = static_cast<int>(graph.nodes.size()) - 1;
  EXPECT_THAT(graph.links, Contains(Field(&GraphLink::to, node)).Times(links));
  EXPECT_EQ(graph.hub, absl::StrCat("host, ", FormatBytes(studied->step->host_peak)))
      << "the way to a drive";
  const nlohmann::json plan =
      Json({job, "--set", Capacity(job, 80), "--strategy", "nvme_swap"}, kExitDone);
  ASSERT_EQ(plan["other_peaks"].size(), 1u);
  EXPECT_EQ(plan["other_peaks"][0]["name"], "drive 0");
  EXPECT_EQ(plan["other_peaks"][0]["bytes"], held.value);
  studied->step->other_peaks.clear();
  EXPECT_EQ(LinkGraphOf(*studied).nodes.size(), graph.nodes.size() - 1);
}

}  // namespace
}  // namespace siphon
