// Looks at a timeline page with a real browser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "launch/output/timeline_page.h"
#include "tests/launch/output/browser.h"
#include "tests/launch/output/timeline_testing.h"

namespace siphon {
namespace {

using testing::HasSubstr;

class Browser : public BrowserTest {};

TimelinePage Page() {
  TimelinePage page{.title = "A step with a title that is longer than a phone is wide",
                    .facts = {{"step time", "80 ns"}, {"bubble_fraction", "12 %"}}};
  page.pictures = {PictureOf(SmallStep(), {Bytes(5000), Bytes(5000)}, "predicted")};
  page.tables = {{"links",
                  {"link", "bytes", "busy", "share of the step", "and more", "and more"},
                  {{"worker 0 to worker 1, forward", "640 B", "5 ns", "6 %", "xxxxx", "yyyyy"}}}};
  return page;
}

TEST_F(Browser, ShowsThePageOnAPhoneInLightMode) {
  const std::string seen = Look(TimelineHtml(Page()), "1");
  EXPECT_THAT(seen, HasSubstr("wide as the screen: true\npicture scrolls: true\n"
                              "background: rgb(255, 255, 255)\nletters: rgb(36, 41, 47)\n"
                              "told: 0B0: 20 ns, from 50 ns"));
  EXPECT_THAT(seen, testing::EndsWith("console: "));
}

TEST_F(Browser, ShowsThePageOnAPhoneInDarkMode) {
  const std::string seen = Look(TimelineHtml(Page()), "0");
  EXPECT_THAT(seen, HasSubstr("wide as the screen: true\n"));
  EXPECT_THAT(seen, HasSubstr("background: rgb(13, 17, 23)\nletters: rgb(230, 237, 243)\n"));
  EXPECT_THAT(seen, testing::EndsWith("console: "));
}

// The check of the checks: a broken page is noticed.
TEST_F(Browser, NoticesAPageThatIsTooWideAndOneThatFails) {
  std::string html = TimelineHtml(Page());
  html = absl::StrReplaceAll(html, {{"</body>",
                                     "<div style=\"width:700px\">x</div>"
                                     "<script>nothing.there()</script></body>"}});
  const std::string seen = Look(html, "1");
  EXPECT_THAT(seen, HasSubstr("wide as the screen: false\n"));
  EXPECT_THAT(seen, HasSubstr("nothing is not defined"));
}

}  // namespace
}  // namespace siphon
