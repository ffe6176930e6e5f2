#include "launch/process/job_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

std::string Prefix() { return absl::StrCat("siphon-", getuid(), "-"); }

std::vector<std::string> DefaultRoots() {
  std::vector<std::string> roots = {"/dev/shm"};
  if (const char* tmpdir = std::getenv("TMPDIR"); tmpdir != nullptr && tmpdir[0] != '\0') {
    roots.push_back(tmpdir);
  }
  for (const char* root : {"/tmp", "/var/tmp"}) {
    if (std::find(roots.begin(), roots.end(), root) == roots.end()) roots.push_back(root);
  }
  return roots;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;  // somebody else may be removing it as well
  fs::remove_all(path, ignored);
}

// The directory, locked; -1 when it is not one of this user's own, or another process holds the
// lock.
int LockDirectory(const std::string& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return -1;
  struct stat opened = {};
  struct stat named = {};
  const bool ours = fstat(directory, &opened) == 0 && opened.st_uid == getuid() &&
                    flock(directory, LOCK_EX | LOCK_NB) == 0 &&
                    // Between open and flock it may have been removed as somebody's remains.
                    lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino;
  if (ours) return directory;
  close(directory);
  return -1;
}

void RemoveRemains(const std::string& root) {
  std::error_code error;
  std::vector<std::string> candidates;
  for (fs::directory_iterator item(root, error), end; !error && item != end;
       item.increment(error)) {
    if (absl::StartsWith(item->path().filename().string(), Prefix())) {
      candidates.push_back(item->path().string());
    }
  }
  for (const std::string& path : candidates) {
    const int lock = LockDirectory(path);
    if (lock < 0) continue;  // its job lives
    RemoveTree(path);
    close(lock);
  }
}

std::optional<Bytes> FreeBytes(const std::string& root) {
  struct statvfs info = {};
  if (statvfs(root.c_str(), &info) != 0) return std::nullopt;
  if (info.f_frsize == 0) return Bytes(0);
  const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / info.f_frsize;
  return Bytes(static_cast<int64_t>(std::min<uint64_t>(info.f_bavail, most) * info.f_frsize));
}

}  // namespace

absl::StatusOr<JobDirectory> JobDirectory::Make(Bytes needed, std::vector<std::string> roots) {
  if (roots.empty()) roots = DefaultRoots();
  for (const std::string& root : roots) RemoveRemains(root);

  std::vector<std::string> reasons;
  for (const std::string& root : roots) {
    const std::optional<Bytes> free = FreeBytes(root);
    if (!free.has_value()) {
      reasons.push_back(absl::StrCat(root, " cannot be used (", std::strerror(errno), ")"));
      continue;
    }
    if (*free < needed) {
      reasons.push_back(absl::StrCat(root, " has ", FormatBytes(*free), " free"));
      continue;
    }
    // Another job's start may take a new directory for remains before it is locked: then make
    // another.
    constexpr int kAttempts = 20;
    for (int attempt = 0;; ++attempt) {
      if (attempt == kAttempts) {
        reasons.push_back(absl::StrCat(root, " has directories that cannot be locked"));
        break;
      }
      std::string path = absl::StrCat(root, "/", Prefix(), "XXXXXX");
      if (mkdtemp(path.data()) == nullptr) {
        reasons.push_back(absl::StrCat(root, " cannot be written (", std::strerror(errno), ")"));
        break;
      }
      const int lock = LockDirectory(path);
      if (lock < 0) {
        rmdir(path.c_str());
        continue;
      }
      JobDirectory directory;
      directory.path_ = path;
      directory.root_ = root;
      directory.passed_over_ = absl::StrJoin(reasons, "; ");
      directory.lock_ = lock;
      return directory;
    }
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "no directory has room for the ", FormatBytes(needed),
      " of shared memory that this job needs: ", absl::StrJoin(reasons, "; "),
      ". Set TMPDIR to a directory with room, or enlarge /dev/shm (docker run --shm-size=",
      needed.value / (1 << 20) + 1, "m)"));
}

JobDirectory::JobDirectory(JobDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      root_(std::move(other.root_)),
      passed_over_(std::move(other.passed_over_)),
      lock_(std::exchange(other.lock_, -1)) {}

JobDirectory::~JobDirectory() {
  if (lock_ < 0) return;
  RemoveTree(path_);
  close(lock_);
}

}  // namespace siphon
