#ifndef SIPHON_LAUNCH_PROCESS_RANK_PROCESS_H_
#define SIPHON_LAUNCH_PROCESS_RANK_PROCESS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "launch/process/board.h"

namespace siphon {

// What Supervise puts into the environment of the ranks.
inline constexpr char kBoardVariable[] = "SIPHON_BOARD";  // the board's file
inline constexpr char kJobDirectoryVariable[] =
    "SIPHON_JOB_DIRECTORY";  // everything temporary goes there
inline constexpr char kLauncherVariable[] = "SIPHON_LAUNCHER_PID";  // mpirun's
inline constexpr char kTerminalVariable[] =
    "SIPHON_TERMINAL_COLUMNS";  // width of the parent's terminal; unset: none

// A rank's first calls, in this order, before MPI_Init:
//
//   DieWithParent();
//   board = Supervised() ? OpenSupervisedBoard() : a board of the ranks' own (CreateAnonymous on
//   one, Open on the others); board->Enter(rank); InstallRankSignalHandlers(board.get()); Heartbeat
//   heartbeat(board.get(), rank, ...);

// Whether this process was started by Supervise, which then prints the report and decides the exit
// code.
bool Supervised();
absl::StatusOr<std::unique_ptr<Board>> OpenSupervisedBoard();
// Where SuperviseOptions::plan is to be read. Empty: there is none, or nobody supervises.
std::string SupervisedPlanPath();

// That file in the job's directory.
std::string PlanPathIn(const std::string& job_directory);
// The one there with what the job's parent prints at its end.
std::string OutcomePathIn(const std::string& job_directory);

// Puts a job's outcome where it belongs, of one rank: to standard output, or, supervised, into a
// file that the parent prints, as mpirun does not say whether what passes it could be written.
// Errors: Internal if that file cannot be written, or that of the launcher's standard output has no
// room; for what this process prints see EndOutput.
absl::Status TellOutcome(const std::string& text);

// From now on this process gets SIGKILL when the mpirun that started it ends, and at once if that
// has happened. Does nothing under other launchers, which end their processes themselves.
void DieWithParent();

// For what all ranks find alike before they run, so that one report is enough: rank 0 returns at
// once to give it, the others some seconds later. mpirun ends all that are left when the first one
// ends.
void LetRankZeroReport(int rank);

// SIGUSR1 and SIGTERM ask the whole job to stop after its step (Board::RequestStop). SIGINT is
// ignored when supervised: the parent turns it into a stop request. Call again with nullptr before
// the board goes.
void InstallRankSignalHandlers(Board* board);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_RANK_PROCESS_H_
