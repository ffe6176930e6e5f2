#ifndef SIPHON_LAUNCH_PROCESS_SUPERVISE_H_
#define SIPHON_LAUNCH_PROCESS_SUPERVISE_H_

#include <string>
#include <vector>

#include "planner/units.h"

namespace siphon {

// What `siphon train` does when it was started alone: it stays the parent and runs itself under
// mpirun.
struct SuperviseOptions {
  int workers = 1;
  std::vector<std::string> command;  // program and arguments of a rank
  std::string plan;  // what the parent has planned, for ranks to read; empty: nothing
  std::vector<std::string> mpirun_options;  // the user's, last
  Nanos heartbeat_timeout = Nanos(20'000'000'000);
  Bytes
      window_bytes;  // shared memory that the ranks will allocate, to choose a directory with room
  std::string resume_command;      // how to go on from a checkpoint; for the report
  std::string checkpoint;          // that the job goes on from; likewise
  std::string mpirun = "mpirun";   // found in PATH
  std::vector<std::string> roots;  // of the job's directory; empty: JobDirectory's
};

// Starts mpirun in a process group of its own with the options that this machine needs (root,
// oversubscription, binding, shared-memory directory, CMA in containers), forwards SIGINT and
// SIGUSR1 as a stop request, ends everything on a second SIGINT, prints one report when a rank
// failed or was lost, prints the outcome that a rank told (TellOutcome) to standard output, removes
// the job's directory, and returns the exit code of the contract: 0
// done, 1 failure, 2 bad input, 3 does not fit, 4 stopped with a checkpoint, 5 a worker was lost,
// 130 second SIGINT.
//
// When it returns no process of the job is left. If this process is killed, mpirun and the ranks
// get SIGKILL from the kernel and the next job removes the directory. Makes this process the reaper
// of its orphaned descendants. Requires: the main thread, and no other Supervise at the time.
int Supervise(const SuperviseOptions& options);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_SUPERVISE_H_
