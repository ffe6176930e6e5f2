#ifndef SIPHON_LAUNCH_DATA_MAPPED_FILE_H_
#define SIPHON_LAUNCH_DATA_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// A file mapped for reading; workers of one host share its pages. Any thread may read it.
// Where the file has been made shorter since, reading beyond its new end is a SIGBUS: CheckWhole
// first.
class MappedFile {
 public:
  // Shared, because a Dataset's reader is a copyable function.
  // Errors: NotFound when it is missing; InvalidArgument when it is empty, a directory, or
  // otherwise not a readable regular file. `key` names the job file's key in messages.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path,
                                                                absl::string_view key);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return {data_, size_}; }
  // Errors: InvalidArgument if the file is shorter than it was when it was opened; `place` is for
  // the message. One system call.
  absl::Status CheckWhole(absl::string_view place) const;
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, int file, const char* data, size_t size)
      : path_(std::move(path)), file_(file), data_(data), size_(size) {}

  std::string path_;
  int file_;
  const char* data_;
  size_t size_;
};

// A hash of the size and of blocks spread evenly over the bytes (all of them when they are few), so
// that it takes a millisecond whatever the size.
uint64_t SampledHash(absl::string_view bytes);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_MAPPED_FILE_H_
