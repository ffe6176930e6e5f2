#include "launch/process/stall_watch.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/process/heartbeat.h"

namespace siphon {
namespace {

constexpr Nanos kPeriod(1'000'000);
constexpr Nanos kTimeout = kPeriod * 4;

std::unique_ptr<Board> BoardWhereAllRun(int ranks) {
  auto board = *Board::CreateAnonymous(ranks);
  for (int rank = 0; rank < ranks; ++rank) board->Enter(rank);
  return board;
}

// Until something is declared; how many calls that took.
int TicksUntilDeclared(Board& board, StallWatch& watch, const std::vector<int>& waiting,
                       int most = 100) {
  for (int tick = 1; tick <= most; ++tick) {
    for (const int rank : waiting) board.Wait(rank);
    watch.Tick();
    if (board.first_failure().has_value()) return tick;
  }
  return -1;
}

TEST(StallWatch, BlamesTheRankThatDoesNotEvenWaitForItsPeers) {
  const auto board = BoardWhereAllRun(3);
  board->SetAction(0, "0B3");
  board->SetAction(1, "1F5");
  board->SetAction(2, "2F5");
  StallWatch watch(board.get(), kTimeout, kPeriod);
  // The first call sees where they are, four more are the timeout, the next one is beyond it.
  EXPECT_EQ(TicksUntilDeclared(*board, watch, {0, 2}), 6);
  const auto failure = board->first_failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->kind, Board::FailureKind::kLost);
  EXPECT_EQ(failure->exit_code, 5);
  EXPECT_EQ(failure->action, "1F5");
  EXPECT_EQ(failure->message, "no worker has begun anything for 4.00 ms, and all wait for it");
}

TEST(StallWatch, SaysSoWhereAllWaitForEachOther) {
  const auto board = BoardWhereAllRun(2);
  StallWatch watch(board.get(), kTimeout, kPeriod);
  EXPECT_EQ(TicksUntilDeclared(*board, watch, {0, 1}), 6);
  const auto failure = board->first_failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 0);
  EXPECT_THAT(failure->message, testing::HasSubstr("all wait for each other"));
}

TEST(StallWatch, LeavesAJobInPeaceInWhichAnyRankGoesOn) {
  const auto board = BoardWhereAllRun(3);
  StallWatch watch(board.get(), kTimeout, kPeriod);
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(TicksUntilDeclared(*board, watch, {0}, 4), -1);
    board->SetAction(2, "2F0");  // the same words each time
  }
}

TEST(StallWatch, BlamesNobodyWhoHasFinished) {
  const auto board = BoardWhereAllRun(2);
  board->SetState(0, Board::State::kFinished);
  StallWatch watch(board.get(), kTimeout, kPeriod);
  EXPECT_EQ(TicksUntilDeclared(*board, watch, {1}), 6);
  EXPECT_EQ(board->first_failure()->rank, 1);
  const auto over = BoardWhereAllRun(1);
  over->SetState(0, Board::State::kFinished);
  StallWatch none(over.get(), kTimeout, kPeriod);
  EXPECT_EQ(TicksUntilDeclared(*over, none, {}), -1);
}

TEST(StallWatch, WithoutATimeoutWaitsForEver) {
  const auto board = BoardWhereAllRun(2);
  StallWatch watch(board.get(), Nanos(0), kPeriod);
  EXPECT_EQ(TicksUntilDeclared(*board, watch, {}, 1000), -1);
}

TEST(Heartbeat, TellsOfAStallWhileItBeats) {
  const auto board = BoardWhereAllRun(2);
  std::mutex mutex;
  std::condition_variable told;
  std::optional<Board::Failure> seen;
  const Heartbeat heartbeat(board.get(), 0, {.stall_timeout = kPeriod * 20, .period = kPeriod},
                            [&](const Board::Failure& failure) {
                              const std::lock_guard lock(mutex);
                              seen = failure;
                              told.notify_all();
                            });
  std::unique_lock lock(mutex);
  while (!told.wait_for(lock, std::chrono::milliseconds(1), [&] { return seen.has_value(); })) {
    board->Beat(1);
    EXPECT_TRUE(heartbeat.Check().ok() || board->first_failure().has_value());
  }
  EXPECT_EQ(seen->rank, 1) << "rank 0 asked whether its peers live";
  EXPECT_GT(board->waits(0), 0);
}

}  // namespace
}  // namespace siphon
