#include "launch/process/rank_process.h"

#include <sys/prctl.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launch/process/launcher_output.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::atomic<Board*> stop_board{nullptr};
static_assert(std::atomic<Board*>::is_always_lock_free);

void RequestStopOnSignal(int) {
  if (Board* board = stop_board.load(std::memory_order_relaxed); board != nullptr) {
    board->RequestStop();
  }
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// What rank 0 takes longer than another one to find the same.
constexpr std::chrono::seconds kForRankZero(10);

const char* Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool Supervised() { return Environment(kBoardVariable)[0] != '\0'; }

absl::StatusOr<std::unique_ptr<Board>> OpenSupervisedBoard() {
  if (!Supervised()) {
    return absl::FailedPreconditionError(absl::StrCat(
        kBoardVariable, " is not set: this process was not started by `siphon train`"));
  }
  return Board::Open(Environment(kBoardVariable));
}

std::string SupervisedPlanPath() {
  if (!Supervised()) return "";
  const std::string path = PlanPathIn(Environment(kJobDirectoryVariable));
  return access(path.c_str(), F_OK) == 0 ? path : "";
}

std::string PlanPathIn(const std::string& job_directory) {
  return absl::StrCat(job_directory, "/plan");
}

std::string OutcomePathIn(const std::string& job_directory) {
  return absl::StrCat(job_directory, "/outcome");
}

absl::Status TellOutcome(const std::string& text) {
  if (!Supervised()) {
    SIPHON_RETURN_IF_ERROR(
        ReserveOutput(LauncherOutputPath(), Bytes(static_cast<int64_t>(text.size()))));
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return absl::OkStatus();
  }
  const std::string path = OutcomePathIn(Environment(kJobDirectoryVariable));
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return file.good() ? absl::OkStatus() : absl::InternalError(absl::StrCat("cannot write ", path));
}

void DieWithParent() {
  int launcher = 0;
  const bool known = absl::SimpleAtoi(Environment(kLauncherVariable), &launcher);
  // The kernel looks at the thread that forked, not at its process: of mpirun that one lives as
  // long as the job, of other launchers nobody says so.
  if (!known && Environment("OMPI_COMM_WORLD_RANK")[0] == '\0') return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before prctl: then another process has taken this one over.
  if (known && getppid() != launcher) raise(SIGKILL);
}

void LetRankZeroReport(int rank) {
  if (rank > 0) std::this_thread::sleep_for(kForRankZero);
}

void InstallRankSignalHandlers(Board* board) {
  stop_board.store(board, std::memory_order_relaxed);
  Handle(SIGUSR1, RequestStopOnSignal);
  Handle(SIGTERM, RequestStopOnSignal);
  if (Supervised()) Handle(SIGINT, SIG_IGN);
}

}  // namespace siphon
