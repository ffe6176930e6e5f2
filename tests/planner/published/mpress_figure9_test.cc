#include "planner/published/mpress_figure9.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/published/mpress_machines.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

MpressFigure9Bar BarOfSeconds(int64_t seconds, int64_t parked_gigabytes) {
  return {.step_time = Nanos(seconds * 1'000'000'000),
          .peers = {.bytes = Bytes(parked_gigabytes * 1'000'000'000)}};
}

TEST(MpressFigure9, IsPrintedBesideThePapers) {
  MpressFigure9 figure{.model = "GPT-15.4B",
                       .machine = "DGX-1",
                       .plain = BarOfSeconds(40, 3),
                       .mapped = BarOfSeconds(32, 4),
                       .striped = BarOfSeconds(50, 5),
                       .complete = BarOfSeconds(20, 6)};
  const std::string text = MpressFigure9Text(figure);
  EXPECT_THAT(text, HasSubstr("neither                  40.00 s   +0.0 %"));
  EXPECT_THAT(text, HasSubstr("device mapping           32.00 s  +25.0 %  +17.4 %"));
  EXPECT_THAT(text, HasSubstr("striping                 50.00 s  -20.0 %  -"));
  EXPECT_THAT(text, HasSubstr("+100.0 %  +33.3 % (or striping alone)"));
  // Both readings of what striping gains once workers are mapped: 1.333 / 1.174, or 33.3 %.
  EXPECT_THAT(text, HasSubstr("both, over mapping       20.00 s  +60.0 %  +13.5 % (or +33.3 %)"));
  EXPECT_THAT(text, Not(HasSubstr("One copy engine")));
  figure.engines = CopyEngines::kOneForAllPeers;
  EXPECT_THAT(MpressFigure9Text(figure), HasSubstr("+100.0 %  +11.0 %"));
  EXPECT_THAT(MpressFigure9Text(figure), HasSubstr("One copy engine"));
  figure.model = "GPT-10.3B";
  EXPECT_THAT(MpressFigure9Text(figure), Not(HasSubstr("+11.0 %")));
}

// Nothing is saved of a model that fits, so there is nothing to map for.
TEST(MpressFigure9, IsFlatWhereEverythingFits) {
  const auto figure = RunMpressFigure9("GPT-5.3B", Dgx1(), ToolsWithFloors());
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->machine, "DGX-1");
  EXPECT_GT(figure->plain.step_time, Nanos(0));
  EXPECT_EQ(figure->complete.step_time, figure->plain.step_time);
  EXPECT_EQ(figure->complete.peers.bytes, Bytes(0));
}

}  // namespace
}  // namespace siphon
