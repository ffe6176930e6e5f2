#include "launch/commands/planning_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace siphon {
namespace {

using testing::EndsWith;
using testing::StartsWith;

TEST(PlanningProgress, SaysWhatItIsAtAndForHowLong) {
  EXPECT_EQ(ProgressLine("planning", "", Nanos(0), 0), "planning ...");
  EXPECT_EQ(ProgressLine("planning", "", Nanos(0), 3), "planning ... 3 s");
  EXPECT_EQ(ProgressLine("planning", "trying one place for all", Nanos(0), 0),
            "planning: trying one place for all ...");
  EXPECT_EQ(ProgressLine("planning with memory.capacity=24GB", "searching further",
                         Nanos(46'900'000'000), 12),
            "planning with memory.capacity=24GB: searching further, 46.9 s a step so far ... 12 s");
}

// What a search writes to standard error when that is `end`, which is closed.
void SayTo(int end) {
  const int before = dup(STDERR_FILENO);
  ASSERT_GE(dup2(end, STDERR_FILENO), 0);
  {
    PlanningProgress progress;
    progress.Say("planning");
    progress.News()("searching further", Nanos(5'000'000));
  }
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(end);
}

std::string ReadUpTo(int from, const std::string& last) {
  std::string text;
  char byte = 0;
  while (!text.ends_with(last) && read(from, &byte, 1) == 1) text += byte;
  return text;
}

// The second begins with what wipes the first, and nothing is left when it is gone.
TEST(PlanningProgress, IsOneLineOfATerminal) {
  int terminal = -1;
  int program = -1;
  ASSERT_EQ(openpty(&terminal, &program, nullptr, nullptr, nullptr), 0);
  SayTo(program);
  const std::string last = "searching further, 5.00 ms a step so far ...";
  const std::string said = ReadUpTo(terminal, last);
  EXPECT_THAT(said, StartsWith("\r\033[Kplanning ..."));
  EXPECT_THAT(said, EndsWith("\r\033[Kplanning: " + last));
  EXPECT_THAT(ReadUpTo(terminal, "\033[K"), EndsWith("\r\033[K"));
  close(terminal);
}

// What is soon done says nothing there.
TEST(PlanningProgress, SaysNothingAtOnceWhereStandardErrorIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  SayTo(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

TEST(PlanningProgress, IsALineEveryFewSecondsWhereStandardErrorIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  ASSERT_GE(dup2(ends[1], STDERR_FILENO), 0);
  close(ends[1]);
  std::string said;
  {
    PlanningProgress progress(std::chrono::milliseconds(1));
    progress.Say("planning");
    progress.News()("searching further", Nanos(5'000'000));
    said = ReadUpTo(ends[0], "\n") + ReadUpTo(ends[0], "\n");
  }
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(ends[0]);
  EXPECT_THAT(said, testing::MatchesRegex("planning.* [0-9]*[05] s\n"
                                          "planning: searching further, 5.00 ms a step so far ... "
                                          "[0-9]*[05] s\n"));
}

}  // namespace
}  // namespace siphon
