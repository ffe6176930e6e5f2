#include "launch/output/timeline_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/output/timeline_testing.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

TimelinePage SmallPage() {
  TimelinePage page{.title = "A <step>", .facts = {{"step time", "80 ns"}}};
  page.pictures = {PictureOf(SmallStep(), {}, "predicted")};
  page.tables = {{"links", {"link", "bytes"}, {{"0 to 1", "640 B"}}}, {"empty", {"x"}, {}}};
  return page;
}

TEST(TimelinePage, HasItsFactsPicturesAndTables) {
  const std::string html = TimelineHtml(SmallPage());
  EXPECT_THAT(html, HasSubstr("<h1>A &lt;step&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("<dt>step time</dt><dd>80 ns</dd>"));
  EXPECT_THAT(html, HasSubstr("<title>0B0: 20 ns, from 50 ns</title>"));
  EXPECT_THAT(html, HasSubstr("<tr><td>0 to 1</td><td>640 B</td></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("<h2>empty</h2>")));
}

TEST(TimelinePage, LegendNamesTheColoursThatOccur) {
  const std::string html = TimelineHtml(SmallPage());
  EXPECT_THAT(html, HasSubstr("background:#4387fd\"></i>forward</span>"));
  EXPECT_THAT(html, HasSubstr("></i>activations</span>"));
  EXPECT_THAT(html, Not(HasSubstr("></i>weight backward</span>")));
  EXPECT_THAT(html, Not(HasSubstr("></i>communication</span>")));
}

TEST(TimelinePage, LoadsNothing) {
  const std::string html = TimelineHtml(SmallPage());
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, Not(HasSubstr("https:")));
}

TEST(TimelinePicture, ComparesWorkerByWorkerOnOneScale) {
  std::vector<WorkerTimeline> measured = SmallStep().workers;
  measured[1].back().end = Nanos(99);
  const TimelinePicture picture = ComparisonOf(SmallStep(), measured, "both");
  std::vector<std::string> names;
  for (const TimelineRow& row : picture.rows) names.push_back(row.name);
  EXPECT_THAT(names, testing::ElementsAre("worker 0 predicted", "worker 0 measured",
                                          "worker 1 predicted", "worker 1 measured"));
  EXPECT_EQ(picture.span, Nanos(99));
}

}  // namespace
}  // namespace siphon
