#include "launch/commands/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/launch/commands/plan_fixture.h"

namespace siphon {
namespace {

using testing::ElementsAre;
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

}  // namespace
}  // namespace siphon
