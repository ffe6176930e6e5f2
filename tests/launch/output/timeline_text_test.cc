#include "launch/output/timeline_text.h"

#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "tests/launch/output/timeline_testing.h"

namespace siphon {
namespace {

TEST(TimelineText, GivesEachActionLettersInProportionToItsTime) {
  TimelinePicture picture = PictureOf(SmallStep(), {}, "");
  picture.rows.resize(2);
  // 40 letters for 80 ns; names take 10.
  EXPECT_EQ(TimelinePictureText(picture, 50, TextColors::kNone),
            "          0    10 ns     30 ns     50 ns     70 ns\n"
            "worker 0  0F0==....................0B0#######0STEP\n"
            "worker 1  ........1F0==1B0#######............1STEP\n");
}

TEST(TimelineText, CutsNamesThatDoNotFit) {
  TimelinePicture picture{.span = Nanos(20)};
  picture.rows = {{"w",
                   {BusyWith("0F12", 0, 3), BusyWith("0I12", 3, 5), BusyWith("0W12", 5, 6),
                    BusyWith("0B1", 6, 16)}}};
  EXPECT_EQ(TimelinePictureText(picture, 23, TextColors::kNone),
            "   0    5 ns      15 ns\n"
            "w  F12I-W0B1#######....\n");
}

TEST(TimelineText, ShowsWhatTakesMostOfALetter) {
  TimelinePicture picture{.span = Nanos(2000)};  // 20 letters of 100 ns
  picture.rows = {{"w", {BusyWith("0F0", 0, 30), BusyWith("0B0", 30, 100)}}};
  const std::vector<std::string> lines =
      absl::StrSplit(TimelinePictureText(picture, 0, TextColors::kNone), '\n');
  EXPECT_EQ(lines[1], "w  B...................");
}

TEST(TimelineText, ColoursOnATerminalOnly) {
  TimelinePicture picture{.span = Nanos(20)};
  picture.rows = {{"w", {BusyWith("0F1", 0, 20)}}};
  EXPECT_EQ(TimelinePictureText(picture, 0, TextColors::kNone).find('\x1b'), std::string::npos);
  EXPECT_NE(TimelinePictureText(picture, 0, TextColors::kTerminal)
                .find("\x1b[48;5;69m\x1b[38;5;16m0F1                 \x1b[0m"),
            std::string::npos);
}

TEST(TimelineText, TakesAStepWithoutTime) {
  EXPECT_EQ(TimelinePictureText({.rows = {{"w", {}}}}, 0, TextColors::kNone),
            "   0\nw  ....................\n");
}

}  // namespace
}  // namespace siphon
