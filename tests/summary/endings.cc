// Cases that end in every way that a test run has to count. Not a test: check_summary.py runs it.

#include <gtest/gtest.h>

#include <cstdlib>

namespace siphon {
namespace {

TEST(Ordinary, Passes) {}
TEST(Ordinary, Fails) { FAIL() << "on purpose"; }
TEST(Ordinary, IsSkipped) { GTEST_SKIP() << "skipped, because there is nothing to do"; }
TEST(Ordinary, DISABLED_IsNotRun) { FAIL() << "is run"; }

// All of its process is good, and none of it is lost.
class Numbered : public testing::TestWithParam<int> {};
TEST_P(Numbered, Passes) { EXPECT_LT(GetParam(), 5); }
INSTANTIATE_TEST_SUITE_P(Five, Numbered, testing::Range(0, 5));

TEST(Crashing, PassesBefore) {}
TEST(Crashing, FailsBefore) { FAIL() << "on purpose"; }
TEST(Crashing, IsSkippedBefore) { GTEST_SKIP() << "skipped, because there is nothing to do"; }
TEST(Crashing, Aborts) { std::abort(); }
TEST(Crashing, ComesAfter) {}
TEST(Crashing, DISABLED_ComesAfter) {}

// A process that says that all is well.
TEST(Leaving, Exits) { std::exit(0); }
TEST(Leaving, ComesAfter) {}

// As a leak that a sanitizer finds.
TEST(FailingAtItsEnd, Passes) {
  std::atexit([] { std::_Exit(3); });
}

}  // namespace
}  // namespace siphon
