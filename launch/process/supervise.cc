#include "launch/process/supervise.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/process/board.h"
#include "launch/process/cma_probe.h"
#include "launch/process/exit_codes.h"
#include "launch/process/failure_report.h"
#include "launch/process/job_directory.h"
#include "launch/process/loss_watch.h"
#include "launch/process/mpirun_output.h"
#include "launch/process/mpirun_process.h"
#include "launch/process/open_files.h"
#include "launch/process/rank_process.h"
#include "launch/process/stop_signals.h"

namespace siphon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kPoll(50);
constexpr Nanos kWatchPeriod(100'000'000);
// Together less than the 10 s in which a failed job must be gone. The first leaves mpirun time for
// its own 2.3 s.
constexpr seconds kFailureGrace(4);
constexpr seconds kKillGrace(3);
// MPI_Finalize and the end of the processes, once all have done their work.
constexpr seconds kLeaveGrace(15);
// From mpirun's start to Board::Enter: loading LibTorch on a busy machine takes seconds.
constexpr seconds kStartGrace(120);
// Open MPI 4.1's own segments and session files in the job's directory: measured 1.9 MiB a rank and
// 0.3 MiB.
constexpr int64_t kOpenMpiBytesPerRank = int64_t{4} << 20;
constexpr int64_t kOpenMpiBytes = int64_t{4} << 20;

void WriteError(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads any more
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string TerminalColumns() {
  winsize size = {};
  if (isatty(STDERR_FILENO) == 0) return "";
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return "80";
  return absl::StrCat(size.ws_col);
}

// Whether it could be written.
bool WritePlan(const std::string& plan, const std::string& job_directory) {
  if (plan.empty()) return true;
  std::ofstream file(PlanPathIn(job_directory), std::ios::binary);
  file << plan << std::flush;
  return file.good();
}

// What a rank left to be printed, if one did.
void PrintOutcome(const std::string& job_directory) {
  std::ifstream file(OutcomePathIn(job_directory), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::fputs(text.c_str(), stdout);
}

// One job, from mpirun's start until nothing is left of it.
class Supervision {
 public:
  Supervision(const SuperviseOptions& options, const JobDirectory& directory,
              const StopSignals& signals, std::unique_ptr<Board> board)
      : options_(options),
        directory_(directory),
        signals_(signals),
        board_(std::move(board)),
        watch_(board_.get(), LossWatch::kNobody, options.heartbeat_timeout, kWatchPeriod),
        output_([](absl::string_view text) { WriteError(text); }) {}

  int Run() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const MpirunSurroundings surroundings = {.root = geteuid() == 0,
                                             .cross_memory_attach = CrossMemoryAttachWorks(),
                                             .job_directory = directory_.path()};
    absl::StatusOr<std::unique_ptr<MpirunProcess>> mpirun =
        MpirunProcess::Start(MpirunCommand(options_.mpirun, options_.workers, surroundings,
                                           options_.mpirun_options, options_.command),
                             {{kBoardVariable, board_->path()},
                              {kJobDirectoryVariable, directory_.path()},
                              {kLauncherVariable, ""},
                              {kTerminalVariable, TerminalColumns()}});
    if (!mpirun.ok()) {
      Say(absl::StrCat("siphon: ", mpirun.status().message(), "\n"));
      return ExitCodeOf(mpirun.status());
    }
    mpirun_ = std::move(*mpirun);
    started_ = Clock::now();
    while (!Over()) Pass();
    const std::optional<int> own_end = mpirun_->TryWait();  // not by our hand
    EndEverything();
    output_.Finish();
    return Conclude(own_end);
  }

 private:
  // Text of ours, on a line of its own below the workers'.
  void Say(absl::string_view text) {
    if (!output_.at_line_start()) WriteError("\n");
    WriteError(text);
  }

  void Pass() {
    DrainErrors(kPoll);
    HeedSignals();
    const Clock::time_point now = Clock::now();
    if (now - last_watch_ < std::chrono::nanoseconds(kWatchPeriod.value)) return;
    last_watch_ = now;
    watch_.Tick();
    if (now - started_ > kStartGrace) {
      for (int rank = 0; rank < options_.workers; ++rank) {
        if (board_->pid(rank) == 0) {
          board_->DeclareLost(rank,
                              absl::StrCat("it did not start within ", kStartGrace.count(), " s"));
        }
      }
    }
  }

  bool Over() {
    if (signals_.interrupts() > 1 || mpirun_->TryWait().has_value()) return true;
    const Clock::time_point now = Clock::now();
    if (board_->first_failure().has_value()) {
      if (!failed_at_.has_value()) failed_at_ = now;
      return now - *failed_at_ > kFailureGrace;
    }
    if (CountOf(Board::State::kFinished) + CountOf(Board::State::kStopped) == options_.workers) {
      if (!left_at_.has_value()) left_at_ = now;
      return now - *left_at_ > kLeaveGrace;
    }
    return false;
  }

  // Passes on what mpirun and the ranks wrote; waits up to `time` for something.
  // False at its end.
  bool DrainErrors(milliseconds time) {
    pollfd waiting = {mpirun_->error_pipe(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(time.count())) <= 0) return true;
    char buffer[16384];
    const ssize_t got = read(mpirun_->error_pipe(), buffer, sizeof buffer);
    if (got > 0) output_.Add(absl::string_view(buffer, static_cast<size_t>(got)));
    if (got == 0) {
      // Closed although mpirun lives: poll would return at once from now on.
      poll(nullptr, 0, static_cast<int>(time.count()));
      return false;
    }
    return true;
  }

  void HeedSignals() {
    if (!asked_ && signals_.interrupts() + signals_.requests() > 0) {
      asked_ = true;
      board_->RequestStop();
      Say("siphon: finishing the step, writing a checkpoint; press Ctrl-C again to stop at once\n");
      interrupt_said_ = signals_.interrupts() > 0;
    } else if (asked_ && !interrupt_said_ && signals_.interrupts() == 1) {
      interrupt_said_ = true;
      Say("siphon: already stopping after this step; press Ctrl-C again to stop at once\n");
    }
  }

  int CountOf(Board::State state) const {
    int count = 0;
    for (int rank = 0; rank < options_.workers; ++rank) count += board_->state(rank) == state;
    return count;
  }

  // Kills and reaps whatever of the job still lives. All of it has the board's path in its
  // environment.
  void EndEverything() {
    const std::string mark = absl::StrCat(kBoardVariable, "=", board_->path());
    std::set<pid_t> reap;
    for (int rank = 0; rank < options_.workers; ++rank) {
      reap.insert(static_cast<pid_t>(board_->pid(rank)));
    }
    const Clock::time_point deadline = Clock::now() + kKillGrace;
    for (;;) {
      mpirun_->KillGroup();
      for (int rank = 0; rank < options_.workers; ++rank) Kill(board_->process(rank));
      const std::vector<ProcessId> left = ProcessesWithEnvironment(mark);
      for (const ProcessId& process : left) {
        Kill(process);
        reap.insert(static_cast<pid_t>(process.pid));
      }
      const bool mpirun_ended = mpirun_->TryWait().has_value();
      // Orphans became children of this process.
      for (const pid_t pid : reap) {
        if (pid > 0 && pid != mpirun_->pid()) waitpid(pid, nullptr, WNOHANG);
      }
      const bool more = DrainErrors(milliseconds(10));
      if (left.empty() && mpirun_ended && !more) return;
      if (Clock::now() > deadline) {
        if (!left.empty()) {
          Say(absl::StrCat("siphon: ", left.size(), " processes do not end, among them pid ",
                           left.front().pid, "\n"));
        }
        return;
      }
    }
  }

  int Conclude(std::optional<int> own_end) {
    if (signals_.interrupts() > 1) {
      Say(absl::StrCat("siphon: stopped at once\n", WhatIsLeft(*board_)));
      return kExitInterrupted;
    }
    DeclareWhoeverIsMissing();
    const std::optional<Board::Failure> failure = board_->first_failure();
    const bool failed = failure.has_value() && failure->kind == Board::FailureKind::kFailed;
    const bool complete =
        CountOf(Board::State::kFinished) + CountOf(Board::State::kStopped) == options_.workers;
    if (own_end.has_value() && WIFSIGNALED(*own_end) && !failed && !complete) {
      Say(absl::StrCat("siphon: mpirun (pid ", mpirun_->pid(), ") was killed by ",
                       DescribeSignal(WTERMSIG(*own_end)), ", and its workers with it\n",
                       WhatIsLeft(*board_)));
      return kExitWorkerLost;
    }
    if (failure.has_value()) {
      Say(absl::StrCat(FailureReport(*board_, output_.HowRankEnded(failure->rank)),
                       failed ? "" : OtherEnds(*failure)));
      return failure->exit_code;
    }
    if (!complete) return ConcludeWithoutWorkers(own_end);
    if (CountOf(Board::State::kStopped) > 0) return kExitStopped;
    if (own_end.has_value() && *own_end == 0) return kExitDone;
    Say(absl::StrCat("siphon: all steps are done, but the workers did not end properly: ",
                     own_end.has_value()
                         ? absl::StrCat("mpirun ended with code ", Code(*own_end))
                         : absl::StrCat("mpirun did not end within ", kLeaveGrace.count(), " s"),
                     "\n", output_.HowOthersEnded(LossWatch::kNobody), WhatIsLeft(*board_)));
    return kExitFailure;
  }

  // mpirun may be gone before the watch saw a rank go; one that was killed before it entered the
  // board only mpirun has seen.
  void DeclareWhoeverIsMissing() {
    for (int rank = 0; rank < options_.workers; ++rank) {
      const Board::State state = board_->state(rank);
      const bool killed = state == Board::State::kStarting && output_.WasKilled(rank);
      if (killed || state == Board::State::kRunning) {
        board_->DeclareLost(rank, "its process is gone");
      }
    }
  }

  // A rank that ended before it entered the board takes others with it, which then look lost. What
  // happens to those that entered is on the board.
  std::string OtherEnds(const Board::Failure& failure) const {
    if (CountOf(Board::State::kStarting) == 0 || !output_.HowRankEnded(failure.rank).empty())
      return "";
    return output_.HowOthersEnded(failure.rank);
  }

  // mpirun did not get as far as to start them, or they ended before they entered the board.
  int ConcludeWithoutWorkers(std::optional<int> own_end) {
    const int code = own_end.has_value() ? Code(*own_end) : kExitFailure;
    const bool none_ran = CountOf(Board::State::kStarting) == options_.workers &&
                          output_.HowOthersEnded(LossWatch::kNobody).empty();
    if (none_ran && !options_.mpirun_options.empty()) {
      Say(absl::StrCat(
          output_.held(), "siphon: launch.mpirun_options: mpirun refused to start with ",
          absl::StrJoin(options_.mpirun_options, " "), "; its own words stand above\n"));
      return kExitBadInput;
    }
    Say(absl::StrCat(output_.held(), "siphon: mpirun ended with code ", code,
                     " before all workers had started\n"));
    return code == kExitBadInput || code == kExitDoesNotFit ? code : kExitFailure;
  }

  static int Code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  const SuperviseOptions& options_;
  const JobDirectory& directory_;
  const StopSignals& signals_;
  const std::unique_ptr<Board> board_;
  LossWatch watch_;
  MpirunOutput output_;
  std::unique_ptr<MpirunProcess> mpirun_;
  Clock::time_point started_;
  Clock::time_point last_watch_;
  std::optional<Clock::time_point> failed_at_;
  std::optional<Clock::time_point> left_at_;
  bool asked_ = false;
  bool interrupt_said_ = false;
};

}  // namespace

int Supervise(const SuperviseOptions& options) {
  const StopSignals signals;  // first: from here on no signal leaves something behind
  const absl::Status files = AllowOpenFiles(FilesOfMpirun(options.workers));
  if (!files.ok()) {
    WriteError(absl::StrCat("siphon: ", files.message(), "\n"));
    return kExitBadInput;
  }
  const Bytes needed = options.window_bytes + Bytes(static_cast<int64_t>(options.plan.size())) +
                       Bytes(kOpenMpiBytes) + Bytes(kOpenMpiBytesPerRank) * options.workers;
  absl::StatusOr<JobDirectory> directory = JobDirectory::Make(needed, options.roots);
  if (!directory.ok()) {
    WriteError(absl::StrCat("siphon: ", directory.status().message(), "\n"));
    return kExitBadInput;
  }
  if (!directory->passed_over().empty()) {
    WriteError(absl::StrCat("siphon: ", directory->passed_over(), ", and this job needs ",
                            FormatBytes(needed), " of shared memory: it is in ", directory->root(),
                            " instead\n"));
  }
  absl::StatusOr<std::unique_ptr<Board>> board =
      Board::Create(absl::StrCat(directory->path(), "/board"), options.workers);
  if (!board.ok()) {
    WriteError(absl::StrCat("siphon: ", board.status().message(), "\n"));
    return kExitFailure;
  }
  if (!WritePlan(options.plan, directory->path())) {
    WriteError(absl::StrCat("siphon: cannot write ", PlanPathIn(directory->path()), "\n"));
    return kExitFailure;
  }
  (*board)->SetNote(Board::Note::kResumeCommand, options.resume_command);
  (*board)->SetNote(Board::Note::kCheckpoint, options.checkpoint);
  const int code = Supervision(options, *directory, signals, std::move(*board)).Run();
  PrintOutcome(directory->path());
  return code;
}

}  // namespace siphon
