#include "launch/process/failure_report.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/process/mpirun_output.h"

namespace siphon {
namespace {

// A rank that sees itself declared lost ends with the job's exit code: that is no cause.
absl::string_view HowLost(const Board::Failure& failure, absl::string_view observed) {
  const bool ended_for_it = observed == ExitedWith(failure.exit_code);
  return observed.empty() || ended_for_it ? failure.message : observed;
}

}  // namespace

std::string WhatIsLeft(const Board& board) {
  const std::string steps = board.note(Board::Note::kSteps);
  const std::string checkpoint = board.note(Board::Note::kCheckpoint);
  const std::string resume = board.note(Board::Note::kResumeCommand);
  std::string text = steps.empty() ? "  the job ended before its first step was complete"
                                   : absl::StrCat("  the job ended after step ", steps);
  if (checkpoint.empty()) return absl::StrCat(text, "; there is no checkpoint to continue from\n");
  // What a worker fails at before that may be the checkpoint itself.
  const std::optional<Board::Failure> failure = board.first_failure();
  const bool failed = failure.has_value() && failure->kind == Board::FailureKind::kFailed;
  if (steps.empty() && failed) {
    return absl::StrCat(text, "; it was to go on from ", checkpoint, "\n");
  }
  absl::StrAppend(&text, "; the last complete checkpoint is ", checkpoint, "\n");
  if (!resume.empty()) absl::StrAppend(&text, "  continue with: ", resume, "\n");
  return text;
}

std::string FailureReport(const Board& board, absl::string_view observed) {
  const std::optional<Board::Failure> failure = board.first_failure();
  if (!failure.has_value()) return "";
  const bool lost = failure->kind == Board::FailureKind::kLost;
  std::string text = absl::StrCat("siphon: worker ", failure->rank, lost ? " was lost" : " failed",
                                  " (rank ", failure->rank);
  if (const int64_t pid = board.pid(failure->rank); pid != 0) absl::StrAppend(&text, ", pid ", pid);
  if (lost) absl::StrAppend(&text, ", ", HowLost(*failure, observed));
  absl::StrAppend(&text, ")");
  if (!failure->action.empty()) {
    // Of another host the board knows what was a moment ago.
    const bool exact = !lost || !board.elsewhere(failure->rank);
    absl::StrAppend(&text, exact ? "" : ", last heard of", " during ", failure->action);
  }
  absl::StrAppend(&text, "\n");
  if (!lost) {
    absl::StrAppend(&text, "  cause: ", absl::StatusCodeToString(failure->code), ": ",
                    absl::StrReplaceAll(failure->message, {{"\n", "\n    "}}), "\n");
  }
  return absl::StrCat(text, WhatIsLeft(board));
}

bool IsReporter(const Board& board, int rank) {
  const std::optional<Board::Failure> failure = board.first_failure();
  const auto is_lost = [&](int other) {
    return failure.has_value() && failure->kind == Board::FailureKind::kLost &&
           failure->rank == other;
  };
  if (is_lost(rank)) return false;
  for (int other = 0; other < rank; ++other) {
    if (is_lost(other)) continue;
    if (board.elsewhere(other) || IsRunning(board.process(other))) return false;
  }
  return true;
}

}  // namespace siphon
