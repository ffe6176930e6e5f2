#include "launch/output/progress.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr Nanos Seconds(int64_t seconds) { return Nanos(seconds * 1'000'000'000); }

StepMetrics OneSecondStep(int64_t number) {
  StepMetrics step;
  step.step = number;
  step.loss = 4.0 / static_cast<double>(number);
  step.duration = Seconds(1);
  step.tokens = 1000;
  return step;
}

class Progress : public testing::Test {
 protected:
  ProgressPrinter Printer(ProgressPrinter::Options options) {
    return ProgressPrinter(options, Seconds(100), [this](absl::string_view text) {
      shown_.append(text.data(), text.size());
    });
  }
  std::string shown_;
};

TEST(FormatDuration, UsesTwoUnitsAtMost) {
  EXPECT_EQ(FormatDuration(Seconds(0)), "0 s");
  EXPECT_EQ(FormatDuration(Seconds(59)), "59 s");
  EXPECT_EQ(FormatDuration(Seconds(200)), "3 min 20 s");
  EXPECT_EQ(FormatDuration(Seconds(7500)), "2 h 05 min");
}

TEST_F(Progress, WithoutATerminalIsALineEveryFewSeconds) {
  ProgressPrinter printer = Printer({.total_steps = 10});
  for (int64_t step = 1; step <= 10; ++step) printer.Step(OneSecondStep(step), Seconds(100 + step));
  printer.Finish();
  EXPECT_EQ(shown_,
            "step 1/10  loss 4.0000  1000 tokens/s  9 s left\n"
            "step 6/10  loss 0.6667  1000 tokens/s  4 s left\n"
            "step 10/10  loss 0.4000  1000 tokens/s  0 s left\n");
}

TEST_F(Progress, OnATerminalIsABarDrawnAgainAndRemovedAtTheEnd) {
  ProgressPrinter printer = Printer({.total_steps = 4, .columns = 100});
  printer.Step(OneSecondStep(1), Seconds(101));
  printer.Step(OneSecondStep(2), Seconds(102));
  printer.Say("a word");
  printer.Finish();
  const std::string first =
      "\r\x1b[K[======                  ] step 1/4  loss 4.0000  1000 tokens/s  3 s left";
  const std::string second =
      "[============            ] step 2/4  loss 2.0000  1000 tokens/s  2 s left";
  EXPECT_EQ(shown_, first + "\r\x1b[K" + second + "\r\x1b[Ka word\n" + second + "\r\x1b[K");
}

TEST_F(Progress, NeverFillsTheLastColumn) {
  ProgressPrinter printer = Printer({.total_steps = 4, .columns = 20});
  printer.Step(OneSecondStep(1), Seconds(101));
  EXPECT_EQ(shown_, "\r\x1b[K[======            ");
}

TEST_F(Progress, DrawsNoMoreOftenThanItsPeriod) {
  ProgressPrinter printer = Printer({.total_steps = 1000, .columns = 80});
  for (int64_t step = 1; step <= 11; ++step) {
    printer.Step(OneSecondStep(step), Seconds(100) + Nanos(step * 10'000'000));
  }
  EXPECT_THAT(shown_, HasSubstr("step 1/1000"));
  EXPECT_THAT(shown_, testing::Not(HasSubstr("step 2/1000")));
  EXPECT_THAT(shown_, HasSubstr("step 11/1000"));
}

TEST_F(Progress, AValidationIsAlwaysShown) {
  ProgressPrinter printer = Printer({.total_steps = 10});
  printer.Step(OneSecondStep(1), Seconds(101));
  StepMetrics step = OneSecondStep(2);
  step.validation_loss = 1.875;
  printer.Step(step, Seconds(102));
  EXPECT_THAT(shown_, testing::EndsWith("step 2/10  loss 2.0000  1000 tokens/s  8 s left\n"
                                        "step 2: validation loss 1.8750\n"));
}

TEST_F(Progress, AResumedRunCountsTimeFromItsOwnBegin) {
  ProgressPrinter printer = Printer({.first_step = 90, .total_steps = 100});
  printer.Step(OneSecondStep(91), Seconds(101));
  EXPECT_THAT(shown_, HasSubstr("step 91/100"));
  EXPECT_THAT(shown_, HasSubstr(" 9 s left"));
}

}  // namespace
}  // namespace siphon
