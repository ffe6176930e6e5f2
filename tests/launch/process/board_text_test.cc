#include "launch/process/board_text.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

using testing::HasSubstr;

std::unique_ptr<Board> BoardOf(int ranks) { return *Board::CreateAnonymous(ranks); }

RankFilter From(int first) {
  return [first](int rank) { return rank >= first; };
}

const RankFilter kAll = From(0);

TEST(BoardText, ShowsRanksOnAnotherBoardAsTheyAreOnTheirs) {
  const auto theirs = BoardOf(4);
  theirs->Enter(2);
  theirs->Beat(2);
  theirs->Beat(2);
  for (int wait = 0; wait < 3; ++wait) theirs->Wait(2);
  theirs->SetAction(2, "2F5 \"\xff\n");  // what an action cannot be comes through too
  theirs->Enter(3);
  theirs->SetState(3, Board::State::kFinished);
  theirs->RequestStop();
  const auto ours = BoardOf(4);
  ours->Enter(0);
  const std::string line = BoardText(*theirs, From(1));
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  ASSERT_TRUE(ShowBoardText(line, From(2), *ours).ok());
  EXPECT_FALSE(ours->elsewhere(0));
  EXPECT_FALSE(ours->elsewhere(1));
  EXPECT_EQ(ours->pid(1), 0);  // it has not entered
  EXPECT_TRUE(ours->elsewhere(2));
  EXPECT_EQ(ours->pid(2), getpid());
  EXPECT_EQ(ours->beats(2), 2);
  EXPECT_EQ(ours->waits(2), 3);
  EXPECT_EQ(ours->actions(2), 1);
  EXPECT_EQ(ours->state(2), Board::State::kRunning);
  EXPECT_EQ(ours->action(2), "2F5 \"\xef\xbf\xbd\n");
  EXPECT_EQ(ours->state(3), Board::State::kFinished);
  EXPECT_TRUE(ours->stop_requested());
  EXPECT_FALSE(ours->first_failure().has_value());
}

TEST(BoardText, BringsAFailureWithAllThatTheReportSays) {
  const auto theirs = BoardOf(2);
  theirs->Enter(1);
  theirs->SetAction(1, "1B3");
  theirs->Fail(1, absl::ResourceExhaustedError("7 bytes more"), 3);
  const auto ours = BoardOf(2);
  ASSERT_TRUE(ShowBoardText(BoardText(*theirs, kAll), kAll, *ours).ok());
  const auto failure = ours->first_failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->kind, Board::FailureKind::kFailed);
  EXPECT_EQ(failure->code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(failure->exit_code, 3);
  EXPECT_EQ(failure->action, "1B3");
  EXPECT_EQ(failure->message, "7 bytes more");
}

TEST(BoardText, KeepsTheFirstFailureOfABoard) {
  const auto theirs = BoardOf(2);
  theirs->Fail(1, absl::InternalError("later"));
  const auto ours = BoardOf(2);
  ours->Fail(0, absl::InternalError("first"));
  ASSERT_TRUE(ShowBoardText(BoardText(*theirs, kAll), kAll, *ours).ok());
  EXPECT_EQ(ours->first_failure()->message, "first");
}

TEST(BoardText, RefusesWhatIsNoneAndShowsNothingOfIt) {
  const auto board = BoardOf(2);
  for (
      const char* line :
      {"", "GET / HTTP/1.1", "{}", "[]", R"({"ranks":[[0,1,1,1]],"stop":true})",
       R"({"ranks":[[2,1,1,1,""]],"stop":true})", R"({"ranks":[[-1,1,1,1,""]],"stop":true})",
       R"({"ranks":[],"stop":true,"failure":{"rank":0}})",
       R"({"ranks":[],"stop":true,"failure":{"rank":2,"kind":0,"code":2,"exit_code":1,"action":"","message":""}})"}) {
    const absl::Status status = ShowBoardText(line, kAll, *board);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("this shows no board ("));
    EXPECT_FALSE(board->stop_requested()) << line;
  }
  // A rank that is not for this sender to tell of.
  EXPECT_EQ(ShowBoardText(R"({"ranks":[[0,1,1,1,""]],"stop":true})", From(1), *board).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(board->pid(0), 0);
}

}  // namespace
}  // namespace siphon
