#ifndef SIPHON_LAUNCH_PROCESS_MPIRUN_PROCESS_H_
#define SIPHON_LAUNCH_PROCESS_MPIRUN_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace siphon {

// What this machine asks of mpirun.
struct MpirunSurroundings {
  bool root = false;                 // mpirun refuses to run as root unless told that it may
  bool cross_memory_attach = false;  // see CrossMemoryAttachWorks
  std::string job_directory;         // for all of Open MPI's files
};

// mpirun and its arguments. `user_options` come last of the options.
std::vector<std::string> MpirunCommand(const std::string& mpirun, int workers,
                                       const MpirunSurroundings& surroundings,
                                       const std::vector<std::string>& user_options,
                                       const std::vector<std::string>& command);

// mpirun as a child in a process group of its own, which gets SIGKILL when the thread that called
// Start ends. Its standard input is /dev/null (a background process group must not read the
// terminal), its standard error a pipe.
//
// Thread-safety: the thread that called Start.
class MpirunProcess {
 public:
  // `environment` is added to this process's; an empty value removes the variable.
  // Errors: NotFound if there is no such program; Internal if it cannot be started.
  static absl::StatusOr<std::unique_ptr<MpirunProcess>> Start(
      const std::vector<std::string>& command,
      const std::vector<std::pair<std::string, std::string>>& environment);
  ~MpirunProcess();  // kills the group and waits
  MpirunProcess(const MpirunProcess&) = delete;
  MpirunProcess& operator=(const MpirunProcess&) = delete;

  pid_t pid() const { return pid_; }
  int error_pipe() const { return error_pipe_; }  // non-blocking
  // As of waitpid, once it has ended.
  std::optional<int> TryWait();
  void KillGroup();

 private:
  MpirunProcess() = default;
  pid_t pid_ = -1;
  int error_pipe_ = -1;
  std::optional<int> status_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_MPIRUN_PROCESS_H_
