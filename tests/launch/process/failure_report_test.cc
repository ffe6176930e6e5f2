#include "launch/process/failure_report.h"

#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

std::unique_ptr<Board> BoardAfterSeventeenSteps() {
  std::unique_ptr<Board> board = *Board::CreateAnonymous(3);
  for (int rank = 0; rank < 3; ++rank) board->Enter(rank);
  board->SetAction(2, "2F5");
  board->SetNote(Board::Note::kSteps, "17");
  board->SetNote(Board::Note::kCheckpoint, "runs/x/checkpoints/step-00000010");
  board->SetNote(Board::Note::kResumeCommand, "siphon train job.yaml --set checkpoint.resume=auto");
  return board;
}

constexpr char kLeft[] =
    "  the job ended after step 17; the last complete checkpoint is "
    "runs/x/checkpoints/step-00000010\n"
    "  continue with: siphon train job.yaml --set checkpoint.resume=auto\n";

TEST(FailureReport, OfALostWorker) {
  const auto board = BoardAfterSeventeenSteps();
  EXPECT_EQ(FailureReport(*board), "");
  board->DeclareLost(2, "no heartbeat for 2.00 s");
  const std::string who = absl::StrCat("siphon: worker 2 was lost (rank 2, pid ", getpid());
  EXPECT_EQ(FailureReport(*board),
            absl::StrCat(who, ", no heartbeat for 2.00 s) during 2F5\n", kLeft));
  EXPECT_EQ(FailureReport(*board, "killed by signal 9 (Killed)"),
            absl::StrCat(who, ", killed by signal 9 (Killed)) during 2F5\n", kLeft));
  EXPECT_EQ(FailureReport(*board, "exited with code 7"),
            absl::StrCat(who, ", exited with code 7) during 2F5\n", kLeft));
  // Of itself, when it saw that.
  EXPECT_EQ(FailureReport(*board, "exited with code 5"),
            absl::StrCat(who, ", no heartbeat for 2.00 s) during 2F5\n", kLeft));
}

// What it did since is not known here.
TEST(FailureReport, OfALostWorkerElsewhere) {
  const auto board = BoardAfterSeventeenSteps();
  board->ShowElsewhere(1, {.pid = 17, .action = "1B4"});
  board->DeclareLost(1, "no heartbeat for 2.00 s");
  EXPECT_EQ(FailureReport(*board),
            absl::StrCat("siphon: worker 1 was lost (rank 1, pid 17, no heartbeat for 2.00 s), "
                         "last heard of during 1B4\n",
                         kLeft));
}

TEST(FailureReport, OfAWorkerThatFailed) {
  const auto board = BoardAfterSeventeenSteps();
  board->Fail(2, absl::ResourceExhaustedError("asked 12 bytes, 7 are free\nstage 2"));
  EXPECT_EQ(FailureReport(*board),
            absl::StrCat("siphon: worker 2 failed (rank 2, pid ", getpid(), ") during 2F5\n",
                         "  cause: RESOURCE_EXHAUSTED: asked 12 bytes, 7 are free\n    stage 2\n",
                         kLeft));
}

TEST(FailureReport, BeforeTheFirstStepAndTheFirstCheckpoint) {
  const auto board = *Board::CreateAnonymous(1);
  board->DeclareLost(0, "it did not start within 120 s");
  EXPECT_EQ(FailureReport(*board),
            "siphon: worker 0 was lost (rank 0, it did not start within 120 s)\n"
            "  the job ended before its first step was complete; there is no checkpoint to "
            "continue from\n");
}

// Continuing from it fails again if that was the cause; a worker that was lost tells nothing of it.
TEST(FailureReport, OfAContinuedJobRecommendsTheCheckpointOnlyWhereItIsNotTheCause) {
  for (const bool lost : {true, false}) {
    const auto board = *Board::CreateAnonymous(1);
    board->SetNote(Board::Note::kCheckpoint, "ckpt/step-5");
    board->SetNote(Board::Note::kResumeCommand, "siphon train job.yaml");
    if (lost) board->DeclareLost(0, "its process is gone");
    if (!lost) board->Fail(0, absl::InvalidArgumentError("damaged"));
    EXPECT_THAT(FailureReport(*board),
                testing::EndsWith(lost ? "was complete; the last complete checkpoint is "
                                         "ckpt/step-5\n  continue with: siphon train job.yaml\n"
                                       : "was complete; it was to go on from ckpt/step-5\n"));
  }
}

TEST(IsReporter, IsTheLowestThatLivesAndIsNotTheLostOne) {
  const auto board = BoardAfterSeventeenSteps();
  EXPECT_TRUE(IsReporter(*board, 0));
  EXPECT_FALSE(IsReporter(*board, 1));
  board->DeclareLost(0, "no heartbeat for 2.00 s");  // its process is there: stopped, say
  EXPECT_TRUE(IsReporter(*board, 1));
  EXPECT_FALSE(IsReporter(*board, 2));
}

}  // namespace
}  // namespace siphon
