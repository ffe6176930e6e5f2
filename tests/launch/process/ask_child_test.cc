#include "launch/process/ask_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace siphon {
namespace {

constexpr Nanos kMinute(60'000'000'000);
constexpr Nanos kBlink(20'000'000);

TEST(AskChild, BringsAnAnswerFromAProcessThatIsGone) {
  int here = 0;
  EXPECT_EQ(AskChild(kMinute,
                     [&here] {
                       here = 1;
                       return std::to_string(getpid() != getppid());
                     }),
            "1");
  EXPECT_EQ(here, 0) << "it was computed in another process";
  EXPECT_EQ(AskChild(kMinute, [] { return std::string(); }), "");
  // More than a pipe holds.
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(AskChild(kMinute, [&much] { return much; }), much);
}

TEST(AskChild, HasNoAnswerFromOneThatDiesOrHangs) {
  EXPECT_EQ(AskChild(kMinute,
                     []() -> std::string {
                       std::raise(SIGKILL);
                       return "never";
                     }),
            std::nullopt);
  EXPECT_EQ(AskChild(kBlink,
                     []() -> std::string {
                       for (;;) pause();
                     }),
            std::nullopt);
}

}  // namespace
}  // namespace siphon
