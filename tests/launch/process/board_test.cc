#include "launch/process/board.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/process/exit_codes.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

// Runs `work` in another process; its exit status.
int InAnotherProcess(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class BoardTest : public testing::Test {
 protected:
  BoardTest() {
    std::string pattern = (fs::temp_directory_path() / "siphon-board-test-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/board";
    auto board = Board::Create(path_, 3);
    EXPECT_TRUE(board.ok()) << board.status();
    board_ = *std::move(board);
  }
  ~BoardTest() override { fs::remove_all(directory_); }

  std::string directory_;
  std::string path_;
  std::unique_ptr<Board> board_;
};

TEST_F(BoardTest, ANewOneIsBlank) {
  EXPECT_EQ(board_->ranks(), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(board_->pid(rank), 0);
    EXPECT_EQ(board_->beats(rank), 0);
    EXPECT_EQ(board_->state(rank), Board::State::kStarting);
    EXPECT_EQ(board_->action(rank), "");
  }
  EXPECT_FALSE(board_->stop_requested());
  EXPECT_FALSE(board_->first_failure().has_value());
  EXPECT_EQ(board_->note(Board::Note::kCheckpoint), "");
}

TEST_F(BoardTest, ShowsAnotherProcess) {
  int64_t pid = 0;
  InAnotherProcess([&] {
    const auto mine = Board::Open(path_);
    ASSERT_TRUE(mine.ok()) << mine.status();
    (*mine)->Enter(1);
    (*mine)->Beat(1);
    (*mine)->Beat(1);
    (*mine)->SetAction(1, "2F5");
    (*mine)->SetNote(Board::Note::kSteps, "17");
    (*mine)->RequestStop();
    (*mine)->SetState(1, Board::State::kStopped);
  });
  pid = board_->pid(1);
  EXPECT_GT(pid, 0);
  EXPECT_NE(pid, getpid());
  EXPECT_EQ(board_->beats(1), 2);
  EXPECT_EQ(board_->state(1), Board::State::kStopped);
  EXPECT_EQ(board_->action(1), "2F5");
  EXPECT_EQ(board_->note(Board::Note::kSteps), "17");
  EXPECT_TRUE(board_->stop_requested());
  EXPECT_FALSE(IsRunning(board_->process(1)));
  EXPECT_EQ(board_->pid(0), 0);
}

TEST_F(BoardTest, TheFirstFailureOfAllProcessesWins) {
  board_->Enter(0);
  board_->SetAction(0, "0B1");
  const int status = InAnotherProcess([&] {
    const auto mine = Board::Open(path_);
    ASSERT_TRUE(mine.ok()) << mine.status();
    (*mine)->Enter(2);
    (*mine)->SetAction(2, "2F5");
    EXPECT_TRUE((*mine)->Fail(2, absl::InvalidArgumentError("no data")));
  });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(board_->Fail(0, absl::InternalError("later")));
  EXPECT_FALSE(board_->DeclareLost(1, "later still"));
  const auto failure = board_->first_failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 2);
  EXPECT_EQ(failure->kind, Board::FailureKind::kFailed);
  EXPECT_EQ(failure->code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failure->exit_code, kExitBadInput);
  EXPECT_EQ(failure->action, "2F5");
  EXPECT_EQ(failure->message, "no data");
  EXPECT_EQ(board_->state(0), Board::State::kFailed);
}

TEST_F(BoardTest, ALossIsOfTheLostRankAndItsAction) {
  board_->Enter(0);
  board_->SetAction(1, "1F0");
  EXPECT_TRUE(board_->DeclareLost(1, "its process is gone"));
  const auto failure = board_->first_failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->kind, Board::FailureKind::kLost);
  EXPECT_EQ(failure->exit_code, kExitWorkerLost);
  EXPECT_EQ(failure->action, "1F0");
}

TEST_F(BoardTest, AnExitCodeMayBeChosen) {
  EXPECT_TRUE(board_->Fail(0, absl::ResourceExhaustedError("too big"), kExitDoesNotFit));
  EXPECT_EQ(board_->first_failure()->exit_code, kExitDoesNotFit);
}

TEST_F(BoardTest, CutsTextsThatAreTooLong) {
  board_->SetAction(0, std::string(100, 'a'));
  EXPECT_EQ(board_->action(0), std::string(64, 'a'));
  board_->Fail(0, absl::InternalError(std::string(10'000, 'm')));
  EXPECT_EQ(board_->first_failure()->message, std::string(3072, 'm'));
}

TEST_F(BoardTest, AReaderNeverSeesHalfAnAction) {
  const std::string texts[] = {std::string(64, 'a'), std::string(40, 'b'), "c"};
  board_->SetAction(0, texts[0]);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) board_->SetAction(0, texts[i % 3]);
    done = true;
  });
  while (!done) EXPECT_THAT(texts, Contains(board_->action(0)));
  writer.join();
}

TEST_F(BoardTest, AWriterKilledHalfWayLeavesAWholeAction) {
  const std::string texts[] = {std::string(64, 'a'), std::string(40, 'b'), "c"};
  for (int round = 0; round < 20; ++round) {
    board_->SetAction(0, texts[0]);
    const int64_t beats = board_->beats(0);
    const pid_t writer = fork();
    if (writer == 0) {
      for (int i = 0;; ++i) {
        board_->SetAction(0, texts[i % 3]);
        board_->Beat(0);
      }
    }
    // Killed while it writes: anywhere in a store.
    while (board_->beats(0) < beats + 100 + round) {
    }
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    EXPECT_THAT(texts, Contains(board_->action(0)));
  }
}

TEST_F(BoardTest, ReplacesNothing) {
  EXPECT_EQ(Board::Create(path_, 2).status(),
            absl::AlreadyExistsError("making the job's board " + path_ + ": File exists"));
  EXPECT_EQ(board_->ranks(), 3);
}

TEST_F(BoardTest, RefusesWhatIsNoBoard) {
  const std::string path = directory_ + "/other";
  for (const size_t size : {size_t{0}, size_t{10}, size_t{100'000}}) {
    std::ofstream(path) << std::string(size, 'x');
    EXPECT_THAT(std::string(Board::Open(path).status().message()),
                HasSubstr("is not a board of this build of siphon"));
  }
  EXPECT_EQ(Board::Open(directory_ + "/none").status(),
            absl::FailedPreconditionError("opening the job's board " + directory_ +
                                          "/none: No such file or directory"));
  EXPECT_FALSE(Board::Create(directory_ + "/empty", 0).ok());
}

TEST(AnonymousBoard, IsSharedWithoutAFile) {
  const auto board = Board::CreateAnonymous(2);
  ASSERT_TRUE(board.ok()) << board.status();
  const std::string path = (*board)->path();
  const int status = InAnotherProcess([&] {
    const auto theirs = Board::Open(path);
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    (*theirs)->Beat(1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*board)->beats(1), 1);
}

TEST(ProcessProbe, KnowsTheLivingFromTheDeadAndFromTheirSuccessors) {
  const ProcessId self = ThisProcess();
  EXPECT_TRUE(IsRunning(self));
  EXPECT_FALSE(IsRunning({self.pid, self.start_ticks + 1}));
  EXPECT_FALSE(IsRunning({}));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // ended, not yet reaped
  EXPECT_FALSE(IsRunning({child, 1}));
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace siphon
