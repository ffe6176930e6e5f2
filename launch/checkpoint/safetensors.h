#ifndef SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_H_
#define SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/checkpoint/file_operations.h"
#include "planner/tensor_spec.h"

namespace siphon {

// The format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape,
// data_offsets}} padded with spaces to a multiple of 8, then the tensors' bytes without gaps.
// "__metadata__" in it maps strings to strings.

struct NamedTensor {
  std::string name;
  TensorSpec spec;
  absl::Span<const std::byte> bytes;
  // Not null: gives the bytes when they are written.
  std::function<absl::StatusOr<absl::Span<const std::byte>>()> bring = nullptr;
};

// Writes one safetensors file and fsyncs it. Tensors of wider elements come first, so that each
// starts on a multiple of its element size. A file that could not be written whole is removed.
// Errors: ResourceExhausted when the disk is full, Internal for other I/O failures (with errno's
// text and the path); InvalidArgument for a name that is used twice or is not UTF-8, or bytes that
// do not fill the shape.
struct WrittenFile {
  int64_t size = 0;
  uint64_t header_checksum = 0;  // as SafetensorsFile::header_checksum()
};
absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path,
                                             const std::vector<NamedTensor>& tensors,
                                             const std::map<std::string, std::string>& metadata,
                                             const FileOperations& files = SystemFiles());

// A tensor in a file; its bytes stand at [begin, begin + size).
struct StoredTensor {
  std::string name;
  TensorSpec spec;
  int64_t begin = 0;  // from the start of the file
  int64_t size = 0;
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

// A file opened for reading, its header checked whole: length and JSON, known types, sizes that
// match shapes, offsets that neither overlap nor leave gaps nor pass the end. It keeps the file
// open, and reads without mapping it: a file that another process cuts short is an error here and
// not a signal. Errors: InvalidArgument naming file and tensor; NotFound.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const {
    return tensors_;
  }  // in the order of their bytes
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  int64_t size() const { return size_; }  // of the whole file
  uint64_t header_checksum() const {
    return header_checksum_;
  }  // of length and JSON with its padding
  // Copies a tensor's bytes out. Requires: destination has tensors()[tensor].size bytes.
  // Errors: InvalidArgument naming file and tensor when the file has become shorter; Internal for
  // I/O failures.
  absl::Status Read(int tensor, absl::Span<std::byte> destination) const;

 private:
  std::string path_;
  std::shared_ptr<const int> descriptor_;  // copies of this object share the open file
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  int64_t size_ = 0;
  uint64_t header_checksum_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_H_
