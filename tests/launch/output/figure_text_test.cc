#include "launch/output/figure_text.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(FigureText, LargeFiguresAreWholeAndHaveNoExponent) {
  EXPECT_EQ(FigureText(19720.4), "19720");
  EXPECT_EQ(FigureText(1234567.8), "1234568");
  EXPECT_EQ(FigureText(999.96), "1000");
}

TEST(CountText, IsOfOneOrOfMany) {
  EXPECT_EQ(CountText(1, "worker"), "1 worker");
  EXPECT_EQ(CountText(0, "worker"), "0 workers");
  EXPECT_EQ(CountText(12, "microbatch"), "12 microbatches");
}

TEST(FigureText, SmallOnesHaveFourDigits) {
  EXPECT_EQ(FigureText(999.94), "999.9");
  EXPECT_EQ(FigureText(3.2141), "3.214");
  EXPECT_EQ(FigureText(0.5), "0.5");
  EXPECT_EQ(FigureText(0.00521), "0.00521");
  EXPECT_EQ(FigureText(0.00002), "0.00002");
  EXPECT_EQ(FigureText(0), "0");
}

}  // namespace
}  // namespace siphon
