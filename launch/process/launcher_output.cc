#include "launch/process/launcher_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// 0, or why there is no room.
int Reserve(int file, Bytes bytes) {
  struct stat info = {};
  if (fstat(file, &info) != 0) return 0;
  // A device that is always full says so of nothing, too.
  if (S_ISCHR(info.st_mode)) return write(file, "", 0) < 0 ? errno : 0;
  return fallocate(file, FALLOC_FL_KEEP_SIZE, info.st_size, bytes.value) != 0 ? errno : 0;
}

}  // namespace

absl::Status ReserveOutput(const std::string& path, Bytes bytes) {
  struct stat info = {};
  if (bytes == Bytes(0) || stat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) return absl::OkStatus();
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return absl::OkStatus();
  const int error = Reserve(file, bytes);
  close(file);
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  if (!is_full) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("standard output could not be written: ", std::strerror(error)));
}

std::string LauncherOutputPath() { return absl::StrCat("/proc/", getppid(), "/fd/1"); }

}  // namespace siphon
