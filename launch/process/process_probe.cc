#include "launch/process/process_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siphon {
namespace {

std::optional<std::string> ReadAll(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t got;
  while ((got = read(file, buffer, sizeof buffer)) > 0) text.append(buffer, got);
  close(file);
  return text;
}

struct Stat {
  char state = '?';
  int64_t start_ticks = 0;
};

std::optional<Stat> ReadStat(int64_t pid) {
  const std::optional<std::string> text = ReadAll(absl::StrCat("/proc/", pid, "/stat"));
  if (!text.has_value()) return std::nullopt;
  // "pid (name) state ppid ...": the name may hold anything, so count from its last parenthesis.
  // The start time is the 22nd field of the line, the 20th from the state on.
  const size_t name_end = text->rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*text).substr(name_end + 2), ' ');
  Stat stat;
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  stat.state = fields[0][0];
  if (!absl::SimpleAtoi(fields[19], &stat.start_ticks)) return std::nullopt;
  return stat;
}

}  // namespace

ProcessId ThisProcess() {
  const int64_t pid = getpid();
  const std::optional<Stat> stat = ReadStat(pid);
  return {pid, stat.has_value() ? stat->start_ticks : 0};
}

bool IsRunning(const ProcessId& process) {
  if (process.pid <= 0) return false;
  if (kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return false;
  if (process.start_ticks == 0) return true;  // no /proc when it was recorded
  const std::optional<Stat> stat = ReadStat(process.pid);
  if (!stat.has_value()) return false;
  return stat->start_ticks == process.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

void Kill(const ProcessId& process) {
  if (IsRunning(process)) kill(static_cast<pid_t>(process.pid), SIGKILL);
}

std::vector<ProcessId> ProcessesWithEnvironment(absl::string_view entry) {
  std::vector<ProcessId> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  const int64_t self = getpid();
  while (const dirent* item = readdir(proc)) {
    int64_t pid = 0;
    if (!absl::SimpleAtoi(item->d_name, &pid) || pid == self) continue;
    const std::optional<std::string> environment = ReadAll(absl::StrCat("/proc/", pid, "/environ"));
    if (!environment.has_value()) continue;
    for (const absl::string_view one : absl::StrSplit(*environment, '\0')) {
      if (one != entry) continue;
      const std::optional<Stat> stat = ReadStat(pid);
      if (stat.has_value() && stat->state != 'Z' && stat->state != 'X') {
        found.push_back({pid, stat->start_ticks});
      }
      break;
    }
  }
  closedir(proc);
  return found;
}

std::string DescribeSignal(int signal) {
  const char* name = sigdescr_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal)
                         : absl::StrCat("signal ", signal, " (", name, ")");
}

}  // namespace siphon
