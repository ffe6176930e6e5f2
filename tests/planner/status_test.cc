#include "planner/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace siphon {
namespace {

TEST(Annotate, PutsTheContextInFrontAndKeepsTheCode) {
  const absl::Status inner = absl::ResourceExhaustedError("asked 4 B, free 3 B");
  const absl::Status outer = Annotate(Annotate(inner, "action 17 2F5"), "worker 2");
  EXPECT_EQ(outer.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(outer.message()), "worker 2: action 17 2F5: asked 4 B, free 3 B");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "worker 2").ok());
}

absl::StatusOr<std::unique_ptr<int>> MaybeSeven(bool works) {
  if (!works) return absl::NotFoundError("no seven");
  return std::make_unique<int>(7);
}

absl::StatusOr<int> Twice(bool works) {
  SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<int> first, MaybeSeven(true));
  SIPHON_ASSIGN_OR_RETURN(const std::unique_ptr<int> second, MaybeSeven(works));
  return *first + *second;
}

TEST(StatusMacros, HandOnTheValueOrTheError) {
  EXPECT_EQ(Twice(true).value(), 14);
  EXPECT_EQ(Twice(false).status(), absl::NotFoundError("no seven"));
}

absl::Status CountAfter(const absl::Status& status, int& count) {
  SIPHON_RETURN_IF_ERROR(status);
  ++count;
  return absl::OkStatus();
}

TEST(StatusMacros, ReturnAtTheFirstError) {
  int count = 0;
  EXPECT_TRUE(CountAfter(absl::OkStatus(), count).ok());
  EXPECT_EQ(CountAfter(absl::InternalError("x"), count), absl::InternalError("x"));
  EXPECT_EQ(count, 1);
}

TEST(CheckDeathTest, NamesTheBrokenPromise) {
  EXPECT_DEATH(SIPHON_CHECK(1 + 1 == 3, "sums are right"),
               "broken promise: sums are right \\(1 \\+ 1 == 3\\)");
}

}  // namespace
}  // namespace siphon
