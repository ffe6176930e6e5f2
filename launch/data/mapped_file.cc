#include "launch/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/keyed_hash.h"

namespace siphon {
namespace {

constexpr size_t kBlocks = 64;
constexpr size_t kBlockBytes = 2048;

struct FileDescriptor {
  ~FileDescriptor() {
    if (value >= 0) close(value);
  }
  int value = -1;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path,
                                                                   absl::string_view key) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(key, " is empty; write the path of a file"));
  }
  const std::string place = absl::StrCat(key, " ", path);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(place, ": ", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, " is ", S_ISDIR(info.st_mode) ? "a directory" : "no regular file",
                     "; write a file"));
  }
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat(place, " is empty"));
  FileDescriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, " cannot be opened: ", std::strerror(errno)));
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.value, 0);
  if (data == MAP_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, " cannot be mapped: ", std::strerror(errno)));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, std::exchange(file.value, -1), static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
  munmap(const_cast<char*>(data_), size_);
  close(file_);
}

absl::Status MappedFile::CheckWhole(absl::string_view place) const {
  struct stat info = {};
  if (fstat(file_, &info) != 0 || info.st_size >= static_cast<off_t>(size_)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(place, " has been cut while in use, from ", size_,
                                                 " to ", info.st_size, " bytes"));
}

uint64_t SampledHash(absl::string_view bytes) {
  uint64_t hash = KeyedHash(RandomPurpose::kDataOrder, {bytes.size()});
  if (bytes.size() <= kBlocks * kBlockBytes) {
    return KeyedHash(RandomPurpose::kDataOrder, hash, bytes);
  }
  const size_t last = bytes.size() - kBlockBytes;
  for (size_t block = 0; block < kBlocks; ++block) {
    // In this order of operations the first block is the head and the last one the tail.
    const size_t at = last / (kBlocks - 1) * block + last % (kBlocks - 1) * block / (kBlocks - 1);
    hash = KeyedHash(RandomPurpose::kDataOrder, hash, bytes.substr(at, kBlockBytes));
  }
  return hash;
}

}  // namespace siphon
