#include "launch/output/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status FileError(absl::string_view doing, const std::string& path, int error) {
  const std::string message = absl::StrCat(doing, " ", path, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::InvalidArgumentError(message);
}

// What the path leads to; nothing where there is nothing yet.
std::optional<struct stat> FileAt(const std::string& path) {
  struct stat there;
  if (stat(path.c_str(), &there) != 0) return std::nullopt;
  return there;
}

// Of standard output and error, the one that is this very file.
std::optional<int> StandardStream(const struct stat& there) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open_file;
    if (fstat(stream, &open_file) != 0) continue;
    if (open_file.st_dev == there.st_dev && open_file.st_ino == there.st_ino) return stream;
  }
  return std::nullopt;
}

// Where links lead to, even if there is nothing yet.
absl::StatusOr<std::string> TargetOf(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::filesystem::path target = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(target, no_link);
    if (no_link) return target.string();
    target = target.parent_path() / next;
  }
  return FileError("writing", path, ELOOP);
}

absl::Status WriteAndClose(int file, absl::string_view text, const std::string& path) {
  absl::Status status = WriteAll(file, text, path);
  // Some file systems tell of a full disk only here.
  if (close(file) != 0 && status.ok()) status = FileError("writing", path, errno);
  return status;
}

// Into a device or a pipe.
absl::Status WriteInPlace(const std::string& path, absl::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return FileError("writing", path, errno);
  return WriteAndClose(file, text, path);
}

// `target` is where `path` leads to.
absl::Status Replace(const std::string& target, absl::string_view text, const std::string& path) {
  const std::string partial = absl::StrCat(target, ".partial");
  const int file = open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return FileError("writing", path, errno);
  absl::Status status = WriteAndClose(file, text, path);
  if (status.ok() && std::rename(partial.c_str(), target.c_str()) != 0) {
    status = FileError("writing", path, errno);
  }
  if (!status.ok()) unlink(partial.c_str());
  return status;
}

}  // namespace

absl::Status WriteAll(int file, absl::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("writing", path, errno);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  if (const std::optional<struct stat> there = FileAt(path)) {
    if (const std::optional<int> stream = StandardStream(*there)) {
      std::fflush(nullptr);  // what has been printed stands before it
      return WriteAll(*stream, text, path);
    }
    if (!S_ISREG(there->st_mode)) return WriteInPlace(path, text);
  }
  SIPHON_ASSIGN_OR_RETURN(const std::string target, TargetOf(path));
  return Replace(target, text, path);
}

absl::Status CheckCanWrite(const std::string& path) {
  if (const std::optional<struct stat> there = FileAt(path)) {
    if (S_ISDIR(there->st_mode)) return FileError("writing", path, EISDIR);
    if (StandardStream(*there).has_value()) return absl::OkStatus();
    if (!S_ISREG(there->st_mode)) {
      return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : FileError("writing", path, errno);
    }
  }
  SIPHON_ASSIGN_OR_RETURN(const std::string target, TargetOf(path));
  std::filesystem::path folder = std::filesystem::path(target).parent_path();
  if (folder.empty()) folder = ".";
  // What is no folder has no "." in it.
  if (access((folder / ".").c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return FileError(absl::StrCat("writing ", path, ": folder"), folder.string(), errno);
}

absl::Status CheckOutputs(std::initializer_list<OutputOption> options) {
  for (const OutputOption& option : options) {
    if (option.path.empty()) continue;
    SIPHON_RETURN_IF_ERROR(Annotate(CheckCanWrite(option.path), option.flag));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTextFileIfThere(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::string();
  if (file < 0) return FileError("reading", path, errno);
  std::string text;
  char buffer[65536];
  ssize_t got;
  while ((got = read(file, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  const int error = errno;
  close(file);
  if (got < 0) return FileError("reading", path, error);
  return text;
}

}  // namespace siphon
