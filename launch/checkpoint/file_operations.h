#ifndef SIPHON_LAUNCH_CHECKPOINT_FILE_OPERATIONS_H_
#define SIPHON_LAUNCH_CHECKPOINT_FILE_OPERATIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace siphon {

// Every call by which saving a checkpoint changes the disk, as POSIX has them (-1 and errno on
// failure). A value and not direct calls, so that a test can let any one of them fail, or all from
// one on, as after a crash.
struct FileOperations {
  std::function<int(const char* path, int flags, mode_t mode)> open;
  std::function<ssize_t(int file, const void* bytes, size_t count)> write;
  std::function<int(int file)> sync;
  std::function<int(int file)> close;
  std::function<int(const char* from, const char* to)> rename;
  std::function<int(const char* a, const char* b)> exchange;  // swaps two names atomically
  std::function<int(const char* path, mode_t mode)> make_directory;
  std::function<int(const char* path)> remove_file;
  std::function<int(const char* path)> remove_directory;  // an empty one
};

const FileOperations& SystemFiles();

// errno as a status with "<what>: <errno's text>": ResourceExhausted when no room is left (disk,
// quota, file size limit), NotFound for a missing path, InvalidArgument for one that may not be
// used so, Internal for everything else.
absl::Status FileError(int error, absl::string_view what);

// Bytes of a file: there, or given when they are written.
struct FilePiece {
  // Implicit: bytes that are there.
  FilePiece(absl::Span<const std::byte> there) : size(there.size()), bytes(there) {}
  FilePiece(size_t size, std::function<absl::StatusOr<absl::Span<const std::byte>>()> bring)
      : size(size), bring(std::move(bring)) {}

  size_t size = 0;
  absl::Span<const std::byte> bytes;
  std::function<absl::StatusOr<absl::Span<const std::byte>>()> bring;  // null: `bytes`
};

// Makes `path` with these pieces one after the other, large ones written in parts, and fsyncs it. A
// file that could not be written whole is removed. Errors: FileError's, naming path and bytes, and
// those of pieces that are brought.
absl::Status WriteFile(const std::string& path, const std::vector<FilePiece>& pieces,
                       const FileOperations& files);
absl::Status WriteTextFile(const std::string& path, absl::string_view text,
                           const FileOperations& files);
// Makes the names in a directory durable.
absl::Status SyncDirectory(const std::string& path, const FileOperations& files);
// Makes a directory and its parents, durably. One that exists is fine.
absl::Status MakeDirectories(const std::string& path, const FileOperations& files);
// Removes a directory with all that is in it, or a file; nothing there is fine.
absl::Status RemoveTree(const std::string& path, const FileOperations& files);

// Reads a whole file. Errors: NotFound; InvalidArgument when it is not a regular file or larger
// than `limit_bytes`.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t limit_bytes);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_FILE_OPERATIONS_H_
