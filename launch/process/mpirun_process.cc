#include "launch/process/mpirun_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <charconv>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/process/rank_process.h"

namespace siphon {
namespace {

std::vector<std::string> MergedEnvironment(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const auto& [name, value] : added) {
      replaced = replaced || absl::StartsWith(*entry, absl::StrCat(name, "="));
    }
    if (!replaced) merged.emplace_back(*entry);
  }
  for (const auto& [name, value] : added) {
    if (!value.empty()) merged.push_back(absl::StrCat(name, "=", value));
  }
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, after fork. `launcher_entry` is "SIPHON_LAUNCHER_PID=" with room for the number.
[[noreturn]] void BecomeMpirun(pid_t parent, int error_end, int exec_failed, char* launcher_digits,
                               size_t room, char* const* arguments, char* const* environment) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGPIPE}) {
    std::signal(signal, SIG_DFL);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(error_end, STDERR_FILENO);
  *std::to_chars(launcher_digits, launcher_digits + room, getpid()).ptr = '\0';
  execvpe(arguments[0], arguments, environment);
  const int error = errno;
  if (write(exec_failed, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

}  // namespace

std::vector<std::string> MpirunCommand(const std::string& mpirun, int workers,
                                       const MpirunSurroundings& surroundings,
                                       const std::vector<std::string>& user_options,
                                       const std::vector<std::string>& command) {
  std::vector<std::string> all = {mpirun, "-np", absl::StrCat(workers)};
  const auto add = [&](std::initializer_list<std::string> more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  if (surroundings.root) add({"--allow-run-as-root"});
  // More workers than cores are allowed and yield to each other; with enough cores the two change
  // nothing.
  add({"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
  // LibTorch's threads decide themselves where to run; bound to one core they would share it.
  add({"--bind-to", "none"});
  // The thread of mpirun that forks a rank must outlive it: see DieWithParent.
  add({"--mca", "odls_base_num_threads", "0"});
  // All ranks are on this host: nothing has to reach another one, by ssh or a batch system, and
  // where there is no ssh mpirun would not start.
  add({"--mca", "plm", "isolated"});
  add({"--mca", "pml", "ob1", "--mca", "btl", "self,vader"});
  if (!surroundings.cross_memory_attach) {
    add({"--mca", "btl_vader_single_copy_mechanism", "none"});
  }
  for (const char* directory : {"orte_tmpdir_base", "btl_vader_backing_directory",
                                "osc_sm_backing_directory", "shmem_mmap_backing_file_base_dir"}) {
    add({"--mca", directory, surroundings.job_directory});
  }
  for (const char* variable : {kBoardVariable, kJobDirectoryVariable, kLauncherVariable}) {
    add({"-x", variable});
  }
  all.insert(all.end(), user_options.begin(), user_options.end());
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

absl::StatusOr<std::unique_ptr<MpirunProcess>> MpirunProcess::Start(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  // All memory is taken before fork: the child may only make system calls.
  std::vector<std::string> arguments = command;
  std::vector<std::string> entries = MergedEnvironment(environment);
  constexpr size_t kDigits = 20;
  std::string launcher = absl::StrCat(kLauncherVariable, "=");
  const size_t digits_at = launcher.size();
  launcher.append(kDigits + 1, '\0');
  entries.push_back(std::move(launcher));
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> entry_pointers = Pointers(entries);

  int error_pipe[2];
  int exec_failed[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("making a pipe: ", std::strerror(errno)));
  }
  if (pipe2(exec_failed, O_CLOEXEC) != 0) {
    close(error_pipe[0]);
    close(error_pipe[1]);
    return absl::InternalError(absl::StrCat("making a pipe: ", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    BecomeMpirun(parent, error_pipe[1], exec_failed[1], entries.back().data() + digits_at, kDigits,
                 argument_pointers.data(), entry_pointers.data());
  }
  const int fork_error = errno;
  close(error_pipe[1]);
  close(exec_failed[1]);
  std::unique_ptr<MpirunProcess> process(new MpirunProcess);
  process->error_pipe_ = error_pipe[0];
  process->pid_ = child;
  int exec_error = 0;
  ssize_t got = 0;
  if (child > 0) {
    setpgid(child, child);  // whichever of the two comes first
    do {
      got = read(exec_failed[0], &exec_error, sizeof exec_error);
    } while (got < 0 && errno == EINTR);
  }
  close(exec_failed[0]);
  if (child < 0) {
    return absl::InternalError(
        absl::StrCat("starting ", command[0], ": ", std::strerror(fork_error)));
  }
  if (got > 0) {
    const std::string message =
        absl::StrCat("starting ", command[0], ": ", std::strerror(exec_error),
                     exec_error == ENOENT ? " (Debian and Ubuntu have it in openmpi-bin)" : "");
    return exec_error == ENOENT ? absl::NotFoundError(message) : absl::InternalError(message);
  }
  fcntl(process->error_pipe_, F_SETFL, O_NONBLOCK);
  return process;
}

std::optional<int> MpirunProcess::TryWait() {
  int status = 0;
  if (pid_ > 0 && !status_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = status;
  }
  return status_;
}

void MpirunProcess::KillGroup() {
  // Not once it is waited for: the number may be another group's then.
  if (pid_ > 0 && !status_.has_value()) kill(-pid_, SIGKILL);
}

MpirunProcess::~MpirunProcess() {
  KillGroup();
  if (pid_ > 0 && !status_.has_value()) {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (error_pipe_ >= 0) close(error_pipe_);
}

}  // namespace siphon
