#include "launch/process/loss_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "launch/process/heartbeat.h"

namespace siphon {
namespace {

constexpr Nanos kPeriod(1'000'000);

std::unique_ptr<Board> SomeBoard(int ranks) { return *Board::CreateAnonymous(ranks); }

// Enters rank `rank` in a process that is then gone.
void EnterAndEnd(Board& board, int rank) {
  const pid_t child = fork();
  if (child == 0) {
    board.Enter(rank);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

TEST(LossWatch, BlamesARankThatIsSilentForLongerThanTheTimeout) {
  const auto board = SomeBoard(2);
  board->Enter(0);
  board->Enter(1);
  LossWatch watch(board.get(), LossWatch::kNobody, kPeriod * 3, kPeriod);
  watch.Tick();  // sees the first counts
  for (int tick = 0; tick < 3; ++tick) {
    board->Beat(0);
    watch.Tick();
  }
  EXPECT_FALSE(board->first_failure().has_value());
  board->Beat(0);
  watch.Tick();
  ASSERT_TRUE(board->first_failure().has_value());
  EXPECT_EQ(board->first_failure()->rank, 1);
  EXPECT_EQ(board->first_failure()->message, "no heartbeat for 3.00 ms");
}

TEST(LossWatch, SeesThatAProcessIsGoneAtTheNextTick) {
  const auto board = SomeBoard(2);
  board->Enter(0);
  EnterAndEnd(*board, 1);
  LossWatch watch(board.get(), 0, kPeriod * 1000, kPeriod);
  watch.Tick();
  watch.Tick();
  ASSERT_TRUE(board->first_failure().has_value());
  EXPECT_EQ(board->first_failure()->message, "its process is gone");
}

TEST(LossWatch, LeavesThoseInPeaceThatHaveFinishedOrNotStarted) {
  const auto board = SomeBoard(3);
  EnterAndEnd(*board, 0);
  board->SetState(0, Board::State::kFinished);
  EnterAndEnd(*board, 1);
  board->SetState(1, Board::State::kStopped);
  LossWatch watch(board.get(), LossWatch::kNobody, kPeriod, kPeriod);
  for (int tick = 0; tick < 10; ++tick) watch.Tick();
  EXPECT_FALSE(board->first_failure().has_value());
}

TEST(Heartbeat, BeatsAndTellsOfAFailureOnce) {
  const auto board = SomeBoard(2);
  board->Enter(0);
  std::mutex mutex;
  std::condition_variable told;
  int calls = 0;
  Board::Failure seen;
  Heartbeat heartbeat(board.get(), 0, {.period = kPeriod}, [&](const Board::Failure& failure) {
    const std::lock_guard<std::mutex> lock(mutex);
    ++calls;
    seen = failure;
    told.notify_all();
  });
  EXPECT_TRUE(heartbeat.Check().ok());
  board->SetAction(1, "1F3");
  board->Fail(1, absl::InternalError("broken"));
  EXPECT_EQ(heartbeat.Check(), absl::InternalError("worker 1 failed during 1F3: broken"));
  std::unique_lock<std::mutex> lock(mutex);
  told.wait(lock, [&] { return calls > 0; });
  EXPECT_EQ(seen.rank, 1);
  lock.unlock();
  const int64_t beats = board->beats(0);
  while (board->beats(0) < beats + 3) std::this_thread::yield();
  lock.lock();
  EXPECT_EQ(calls, 1);
}

TEST(Heartbeat, EndsAProcessThatDoesNotEndItself) {
  const auto board = SomeBoard(1);
  const pid_t child = fork();
  if (child == 0) {
    board->Enter(0);
    Heartbeat heartbeat(board.get(), 0, {.period = kPeriod, .grace = kPeriod * 5},
                        [](const Board::Failure&) {
                          for (;;) pause();  // as an abort that hangs
                        });
    board->Fail(0, absl::InternalError("broken"), 42);
    for (;;) pause();
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace siphon
