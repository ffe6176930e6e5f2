#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checksum.h"
#include "launch/checkpoint/safetensors.h"
#include "launch/checkpoint/safetensors_header.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr int64_t kLengthBytes = 8;

absl::Status Damaged(absl::string_view place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

// Bytes [begin, begin + destination.size()).
absl::Status ReadAt(absl::string_view place, int descriptor, int64_t begin,
                    absl::Span<std::byte> destination) {
  while (!destination.empty()) {
    const ssize_t count = ::pread(descriptor, destination.data(), destination.size(), begin);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, absl::StrCat(place, ": reading byte ", begin));
    if (count == 0) {
      return Damaged(place,
                     absl::StrCat("the file ends at byte ", begin, ", with ", destination.size(),
                                  " more to read: it was truncated after it was opened"));
    }
    destination.remove_prefix(static_cast<size_t>(count));
    begin += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const int>> OpenForReading(const std::string& path) {
  int descriptor;
  do {  // O_NONBLOCK: a named pipe in the place of the file must not stop us
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return FileError(errno, absl::StrCat(path, ": opening the file"));
  return std::shared_ptr<const int>(new int(descriptor), [](const int* opened) {
    ::close(*opened);
    delete opened;
  });
}

absl::StatusOr<int64_t> SizeOfFile(const std::string& path, int descriptor) {
  struct stat found;
  if (::fstat(descriptor, &found) < 0) return FileError(errno, path);
  if (!S_ISREG(found.st_mode)) return Damaged(path, "is not a file");
  return static_cast<int64_t>(found.st_size);
}

// Length and JSON of the header, as they stand in the file.
absl::StatusOr<std::string> ReadHeader(const std::string& path, int descriptor, int64_t size) {
  if (size < kLengthBytes) {
    return Damaged(path, absl::StrCat("is ", size,
                                      " bytes long; a safetensors file begins with 8 bytes of "
                                      "header length"));
  }
  uint64_t length = 0;
  std::byte bytes[kLengthBytes];
  SIPHON_RETURN_IF_ERROR(ReadAt(path, descriptor, 0, absl::MakeSpan(bytes)));
  std::memcpy(&length, bytes, sizeof(length));
  if (length > kMostHeaderBytes) {
    return Damaged(path, absl::StrCat("the header claims ", length, " bytes; at most ",
                                      kMostHeaderBytes, " are allowed"));
  }
  if (static_cast<int64_t>(length) > size - kLengthBytes) {
    return Damaged(
        path, absl::StrCat("the header claims ", length, " bytes, but only ", size - kLengthBytes,
                           " follow: the file is truncated or damaged"));
  }
  std::string header(static_cast<size_t>(kLengthBytes) + length, '\0');
  SIPHON_RETURN_IF_ERROR(
      ReadAt(path, descriptor, 0,
             absl::MakeSpan(reinterpret_cast<std::byte*>(header.data()), header.size())));
  return header;
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  SIPHON_ASSIGN_OR_RETURN(file.descriptor_, OpenForReading(path));
  SIPHON_ASSIGN_OR_RETURN(file.size_, SizeOfFile(path, *file.descriptor_));
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadHeader(path, *file.descriptor_, file.size_));
  const auto data_begin = static_cast<int64_t>(text.size());
  auto header =
      ParseSafetensorsHeader(absl::string_view(text).substr(kLengthBytes), file.size_ - data_begin);
  if (!header.ok()) return Annotate(header.status(), path);
  for (StoredTensor& tensor : header->tensors) tensor.begin += data_begin;
  file.tensors_ = std::move(header->tensors);
  file.metadata_ = std::move(header->metadata);
  file.header_checksum_ = Checksum(text);
  return file;
}

absl::Status SafetensorsFile::Read(int tensor, absl::Span<std::byte> destination) const {
  const StoredTensor& stored = tensors_[static_cast<size_t>(tensor)];
  SIPHON_CHECK(static_cast<int64_t>(destination.size()) == stored.size,
               "a tensor is read into as many bytes as it has");
  return ReadAt(absl::StrCat(path_, ": tensor '", stored.name, "'"), *descriptor_, stored.begin,
                destination);
}

}  // namespace siphon
