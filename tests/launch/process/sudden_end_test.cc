#include "launch/process/sudden_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>
#include <cstdlib>

namespace siphon {
namespace {

// Of a plugin that is loaded.
LastWords Words() {
  return {.who = "siphon: job.yaml:3:12: model.library: plugin x.so",
          .instead = "a plugin returns",
          .exit_code = 2};
}

TEST(SuddenEndGuard, MakesAnExitThatLooksLikeSuccessAnError) {
  EXPECT_EXIT(
      {
        const SuddenEndGuard guard(Words());
        std::exit(0);
      },
      testing::ExitedWithCode(2),
      "^siphon: job.yaml:3:12: model.library: plugin x.so ended the program by exit\\(\\); a "
      "plugin "
      "returns\n$");
}

TEST(SuddenEndGuard, SaysWhoCrashedAndHow) {
  EXPECT_EXIT(
      {
        const SuddenEndGuard guard(Words());
        std::raise(SIGSEGV);
      },
      testing::ExitedWithCode(2),
      "^siphon: job.yaml:3:12: model.library: plugin x.so crashed: signal 11 \\(Segmentation "
      "fault\\)\n$");
  EXPECT_EXIT(
      {
        const SuddenEndGuard guard(Words());
        std::abort();
      },
      testing::ExitedWithCode(2), "plugin x.so crashed: signal 6 \\(Aborted\\)\n$");
}

TEST(SuddenEndGuard, SaysNothingOnceItIsGone) {
  EXPECT_EXIT(
      {
        { const SuddenEndGuard guard(Words()); }
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST(SuddenEndGuard, LeavesCrashesToWhoeverHadThemBefore) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, [](int) { _exit(7); });
        { const SuddenEndGuard guard(Words()); }
        std::raise(SIGSEGV);
      },
      testing::ExitedWithCode(7), "^$");
}

}  // namespace
}  // namespace siphon
