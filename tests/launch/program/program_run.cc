#include "tests/launch/program/program_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll(10);
constexpr std::chrono::seconds kMoment(5);          // for what ends by itself
constexpr std::chrono::seconds kStartDeadline(45);  // below the tests' own time limit

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Pause() { poll(nullptr, 0, static_cast<int>(kPoll.count())); }

// 'T' for one that was stopped; 0 when it is gone.
char StateOf(int64_t pid) {
  const std::string stat = ReadWhole(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(')');  // the name may hold anything
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '\0' : stat[name_end + 2];
}

// Where the program makes its jobs' directories when TMPDIR is <root>/tmp.
std::vector<std::string> JobDirectories(const std::string& root) {
  const std::string prefix = absl::StrCat("siphon-", getuid(), "-");
  std::vector<std::string> found;
  for (const std::string& place :
       {std::string("/dev/shm"), root + "/tmp", std::string("/tmp"), std::string("/var/tmp")}) {
    std::error_code error;
    for (fs::directory_iterator item(place, error), end; !error && item != end;
         item.increment(error)) {
      if (absl::StartsWith(item->path().filename().string(), prefix)) {
        found.push_back(item->path().string());
      }
    }
  }
  return found;
}

bool IsHeld(const std::string& directory) {
  const int file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return true;  // gone by now
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0;
  close(file);
  return held;
}

bool Open(const std::string& path, int flags, int as) {
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
  return file >= 0 && dup2(file, as) >= 0;
}

}  // namespace

ProgramTest::ProgramTest() {
  std::string pattern = (fs::temp_directory_path() / "siphon-program-test-XXXXXX").string();
  root_ = mkdtemp(pattern.data());
  mark_ = absl::StrCat("SIPHON_PROGRAM_TEST=", root_);
  fs::create_directory(PathOf("tmp"));
  before_ = JobDirectories(root_);
}

ProgramTest::~ProgramTest() {
  for (const ProcessId& process : ProcessesWithEnvironment(mark_)) Kill(process);
  fs::remove_all(root_);
}

std::string ProgramTest::WriteFile(const std::string& name, const std::string& text) const {
  const std::string path = PathOf(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

ProgramEnd ProgramTest::Siphon(const std::vector<std::string>& arguments,
                               const RunOptions& options) {
  std::vector<std::string> command = {program_.path};
  command.insert(command.end(), arguments.begin(), arguments.end());
  RunOptions all = options;
  all.environment.insert(all.environment.begin(), program_.environment.begin(),
                         program_.environment.end());
  return Run(std::move(command), all);
}

ProgramEnd ProgramTest::Run(std::vector<std::string> command, const RunOptions& options) {
  std::vector<std::string> environment = {mark_, "TMPDIR=" + PathOf("tmp"),
                                          "XDG_CACHE_HOME=" + PathOf("cache")};
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  const std::string input = WriteFile("stdin", options.input);
  const auto begin = steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const bool redirected = Open(input, O_RDONLY, STDIN_FILENO) &&
                            Open(PathOf("stdout"), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO) &&
                            Open(PathOf("stderr"), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    if (!redirected) _exit(127);
    for (std::string& entry : environment) putenv(entry.data());
    if (options.prepare && !options.prepare()) _exit(kForbidden);
    std::vector<char*> arguments;
    for (std::string& text : command) arguments.push_back(text.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  if (options.meanwhile) options.meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  ProgramEnd end;
  end.seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  ReadEnd(status, end);
  return end;
}

void ProgramTest::ReadEnd(int status, ProgramEnd& end) const {
  std::error_code error;
  const auto last_step = fs::last_write_time(PathOf("run/metrics.jsonl"), error);
  if (!error) {
    end.seconds_since_last_step =
        std::chrono::duration<double>(fs::file_time_type::clock::now() - last_step).count();
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  end.output = ReadWhole(PathOf("stdout"));
  end.errors = ReadWhole(PathOf("stderr"));
}

std::optional<ProcessId> ProgramTest::WaitForStopped(pid_t program) const {
  const auto deadline = steady_clock::now() + kStartDeadline;
  while (steady_clock::now() < deadline) {
    for (const ProcessId& process : ProcessesWithEnvironment(mark_)) {
      if (StateOf(process.pid) == 'T') return process;
    }
    siginfo_t ended = {};
    if (waitid(P_PID, static_cast<id_t>(program), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid == program) {
      return std::nullopt;
    }
    Pause();
  }
  kill(program, SIGKILL);
  return std::nullopt;
}

std::optional<ProcessId> ProgramTest::ProcessOfRank(int rank) const {
  const std::vector<ProcessId> ours = ProcessesWithEnvironment(mark_);
  const std::string started = absl::StrCat("OMPI_COMM_WORLD_RANK=", rank);
  for (const ProcessId& process : ProcessesWithEnvironment(started)) {
    const bool is_ours = std::any_of(ours.begin(), ours.end(),
                                     [&](const ProcessId& our) { return our.pid == process.pid; });
    if (is_ours) return process;
  }
  return std::nullopt;
}

pid_t ProgramTest::FindProcess(const std::string& name) const {
  for (const ProcessId& process : ProcessesWithEnvironment(mark_)) {
    if (ReadWhole(absl::StrCat("/proc/", process.pid, "/comm")) == name + "\n") {
      return static_cast<pid_t>(process.pid);
    }
  }
  return 0;
}

std::vector<std::string> ProgramTest::Remains() const {
  std::vector<std::string> remains;
  for (const std::string& path : JobDirectories(root_)) {
    const bool is_new = std::find(before_.begin(), before_.end(), path) == before_.end();
    if (is_new && !IsHeld(path)) remains.push_back(path);
  }
  for (const auto& item : fs::directory_iterator(PathOf("tmp"))) {
    if (std::find(remains.begin(), remains.end(), item.path().string()) == remains.end()) {
      remains.push_back(item.path().string());
    }
  }
  return remains;
}

void ProgramTest::ExpectNothingLeft() const {
  const auto deadline = steady_clock::now() + kMoment;
  while ((!ProcessesWithEnvironment(mark_).empty() || !Remains().empty()) &&
         steady_clock::now() < deadline) {
    Pause();
  }
  for (const ProcessId& process : ProcessesWithEnvironment(mark_)) {
    ADD_FAILURE() << "process " << process.pid
                  << " is left: " << ReadWhole(absl::StrCat("/proc/", process.pid, "/comm"));
  }
  for (const std::string& path : Remains()) ADD_FAILURE() << path << " is left";
}

}  // namespace siphon
