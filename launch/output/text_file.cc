#include "launch/output/text_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

absl::Status FileError(absl::string_view doing, const std::string& path, int error) {
  const std::string message = absl::StrCat(doing, " ", path, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::InvalidArgumentError(message);
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
  const std::string partial = absl::StrCat(path, ".partial");
  const int file = open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return FileError("writing", path, errno);
  absl::Status status = WriteAll(file, text, path);
  // Some file systems tell of a full disk only here.
  if (close(file) != 0 && status.ok()) status = FileError("writing", path, errno);
  if (status.ok() && std::rename(partial.c_str(), path.c_str()) != 0) {
    status = FileError("writing", path, errno);
  }
  if (!status.ok()) unlink(partial.c_str());
  return status;
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
