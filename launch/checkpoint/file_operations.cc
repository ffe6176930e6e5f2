#include "launch/checkpoint/file_operations.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// One write(2) takes at most this much: a signal or a full disk is then noticed soon, and Linux
// stops at 2 GiB anyway.
constexpr size_t kWriteBytes = size_t{64} << 20;

// A descriptor that is closed on every way out.
class OpenFile {
 public:
  OpenFile(int descriptor, const FileOperations& files) : descriptor_(descriptor), files_(files) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) files_.close(descriptor_);
  }
  int descriptor() const { return descriptor_; }
  // Network file systems report a full disk only here.
  int Close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return files_.close(descriptor);
  }

 private:
  int descriptor_;
  const FileOperations& files_;
};

int RetryOpen(const FileOperations& files, const std::string& path, int flags) {
  int descriptor;
  do {
    descriptor = files.open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

int RetrySync(const FileOperations& files, int descriptor) {
  int result;
  do {
    result = files.sync(descriptor);
  } while (result < 0 && errno == EINTR);
  return result;
}

absl::Status WritePieces(const std::string& path, const OpenFile& file,
                         const std::vector<FilePiece>& pieces, const FileOperations& files) {
  size_t total = 0, written = 0;
  for (const FilePiece& piece : pieces) total += piece.size;
  for (const FilePiece& piece : pieces) {
    absl::Span<const std::byte> rest = piece.bytes;
    if (piece.bring != nullptr) {
      SIPHON_ASSIGN_OR_RETURN(rest, piece.bring());
    }
    SIPHON_CHECK(rest.size() == piece.size, "a piece is as long as it says");
    while (!rest.empty()) {
      const ssize_t count =
          files.write(file.descriptor(), rest.data(), std::min(rest.size(), kWriteBytes));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        return FileError(count == 0 ? ENOSPC : errno,
                         absl::StrCat(path, ": writing byte ", written, " of ", total));
      }
      rest.remove_prefix(static_cast<size_t>(count));
      written += static_cast<size_t>(count);
    }
  }
  return absl::OkStatus();
}

absl::Status CreateFile(const std::string& path, const std::vector<FilePiece>& pieces,
                        const FileOperations& files) {
  OpenFile file(RetryOpen(files, path, O_WRONLY | O_CREAT | O_TRUNC), files);
  if (file.descriptor() < 0) return FileError(errno, absl::StrCat(path, ": creating the file"));
  SIPHON_RETURN_IF_ERROR(WritePieces(path, file, pieces, files));
  if (RetrySync(files, file.descriptor()) < 0) {
    return FileError(errno, absl::StrCat(path, ": bringing the file to disk"));
  }
  if (file.Close() < 0 && errno != EINTR) {
    return FileError(errno, absl::StrCat(path, ": closing the file"));
  }
  return absl::OkStatus();
}

// "a/b" of "a/b/c", "." of "c".
std::string ParentOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

FileOperations MakeSystemFiles() {
  FileOperations files;
  files.open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); };
  files.write = ::write;
  files.sync = ::fsync;
  files.close = ::close;
  files.rename = [](const char* from, const char* to) { return std::rename(from, to); };
  files.exchange = [](const char* a, const char* b) {
    return static_cast<int>(
        ::syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, static_cast<unsigned>(RENAME_EXCHANGE)));
  };
  files.make_directory = ::mkdir;
  files.remove_file = ::unlink;
  files.remove_directory = ::rmdir;
  return files;
}

}  // namespace

const FileOperations& SystemFiles() {
  static const FileOperations* const files = new FileOperations(MakeSystemFiles());
  return *files;
}

absl::Status FileError(int error, absl::string_view what) {
  const std::string message = absl::StrCat(what, ": ", std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status WriteFile(const std::string& path, const std::vector<FilePiece>& pieces,
                       const FileOperations& files) {
  const absl::Status status = CreateFile(path, pieces, files);
  if (!status.ok()) files.remove_file(path.c_str());
  return status;
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text,
                           const FileOperations& files) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return WriteFile(path, {FilePiece(absl::MakeConstSpan(bytes, text.size()))}, files);
}

absl::Status SyncDirectory(const std::string& path, const FileOperations& files) {
  const OpenFile directory(RetryOpen(files, path, O_RDONLY | O_DIRECTORY), files);
  if (directory.descriptor() >= 0 && RetrySync(files, directory.descriptor()) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINVAL) {  // that is a file system whose directories need no fsync
    return FileError(errno, absl::StrCat(path, ": bringing the directory to disk"));
  }
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path, const FileOperations& files) {
  const std::string parent = ParentOf(path);
  int error = files.make_directory(path.c_str(), 0777) == 0 ? 0 : errno;
  if (error == ENOENT && parent != path) {
    SIPHON_RETURN_IF_ERROR(MakeDirectories(parent, files));
    error = files.make_directory(path.c_str(), 0777) == 0 ? 0 : errno;
  }
  if (error == 0) return SyncDirectory(parent, files);
  if (error != EEXIST) return FileError(error, absl::StrCat(path, ": making the directory"));
  struct stat found;
  if (::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return absl::OkStatus();
  return FileError(ENOTDIR, absl::StrCat(path, ": making the directory"));
}

absl::Status RemoveTree(const std::string& path, const FileOperations& files) {
  struct stat found;
  if (::lstat(path.c_str(), &found) < 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return FileError(errno, absl::StrCat(path, ": removing"));
  }
  if (!S_ISDIR(found.st_mode)) {
    if (files.remove_file(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
    return FileError(errno, absl::StrCat(path, ": removing the file"));
  }
  std::error_code error;
  std::vector<std::string> children;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    children.push_back(entry->path());
  }
  if (error) return FileError(error.value(), absl::StrCat(path, ": listing the directory"));
  for (const std::string& child : children) SIPHON_RETURN_IF_ERROR(RemoveTree(child, files));
  if (files.remove_directory(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError(errno, absl::StrCat(path, ": removing the directory"));
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t limit_bytes) {
  const OpenFile file(RetryOpen(SystemFiles(), path, O_RDONLY | O_NONBLOCK), SystemFiles());
  if (file.descriptor() < 0) return FileError(errno, absl::StrCat(path, ": opening the file"));
  struct stat found;
  if (::fstat(file.descriptor(), &found) < 0) return FileError(errno, path);
  if (!S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a file"));
  }
  if (found.st_size > limit_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is ", found.st_size,
                                                   " bytes long; at most ", limit_bytes,
                                                   " make sense for a file of its kind"));
  }
  std::string text(static_cast<size_t>(found.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::read(file.descriptor(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, absl::StrCat(path, ": reading the file"));
    if (count == 0) break;  // it became shorter in between
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

}  // namespace siphon
