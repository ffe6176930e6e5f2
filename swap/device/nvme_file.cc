#include "swap/device/nvme_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/nvme_io.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

absl::Status FileError(const std::string& name, absl::string_view doing, int error) {
  return absl::InternalError(
      absl::StrCat("drive file ", name, ": ", doing, ": ", std::strerror(error)));
}

bool IsFull(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// A file system that cannot go past the page cache says EINVAL.
struct OpenedFile {
  int fd = -1;
  std::string name;
  bool direct = false;
  int error = 0;
};

OpenedFile OpenNew(const NvmeFileOptions& options) {
  for (const bool direct : {true, false}) {
    if (direct && options.direct == NvmeFileOptions::Direct::kNever) continue;
    std::string name = absl::StrCat(options.directory, "/", options.name, "-XXXXXX");
    const int fd = mkostemp(name.data(), O_CLOEXEC | (direct ? O_DIRECT : 0));
    const int error = errno;
    // With EINVAL the kernel may have made the file before it refused to open it so.
    if (fd < 0 && direct && error == EINVAL) {
      unlink(name.c_str());
      continue;
    }
    return {fd, std::move(name), direct, fd < 0 ? error : 0};
  }
  return {};
}

// By writing it, where there is no other way.
int WriteZeros(int fd, int64_t bytes) {
  constexpr int64_t kAtOnce = 1 << 20;
  void* memory = nullptr;
  if (posix_memalign(&memory, kNvmeBlock, kAtOnce) != 0) return ENOMEM;
  std::memset(memory, 0, kAtOnce);
  int error = 0;
  for (int64_t done = 0; done < bytes && error == 0;) {
    const ssize_t written =
        pwrite(fd, memory, static_cast<size_t>(std::min(kAtOnce, bytes - done)), done);
    if (written > 0) {
      done += written;
    } else if (written == 0 || errno != EINTR) {
      error = written == 0 ? ENOSPC : errno;
    }
  }
  std::free(memory);
  return error;
}

int SetAside(int fd, int64_t bytes) {
  while (fallocate(fd, 0, 0, bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return WriteZeros(fd, bytes);
    return errno;
  }
  return 0;
}

Bytes OnDisk(const struct stat& facts) {
  constexpr int64_t kUnit = 512;  // of st_blocks, whatever the file system's own
  return Bytes(facts.st_blocks * kUnit);
}

Bytes InBlocks(Bytes bytes) {
  return Bytes((bytes.value + kNvmeBlock - 1) / kNvmeBlock * kNvmeBlock);
}

}  // namespace

absl::StatusOr<Bytes> FreeOnDrive(const std::string& directory) {
  fs::path path = directory;
  std::error_code ignored;
  while (!path.empty() && !fs::exists(path, ignored) && path != path.parent_path()) {
    path = path.parent_path();
  }
  if (path.empty()) path = ".";
  struct statvfs facts {};
  if (statvfs(path.c_str(), &facts) != 0) {
    return absl::InternalError(
        absl::StrCat(path.string(), ": its free space is not to be had: ", std::strerror(errno)));
  }
  return Bytes(static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize));
}

absl::Status CheckRoomOnDrive(const std::string& directory, Bytes bytes) {
  SIPHON_ASSIGN_OR_RETURN(const Bytes free, FreeOnDrive(directory));
  if (bytes + kDriveMargin <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the drive of ", directory, " has ", FormatBytes(free), " free; to park tensors there takes ",
      FormatBytes(bytes), ", and ", FormatBytes(kDriveMargin), " must stay free"));
}

absl::StatusOr<NvmeFile> NvmeFile::Make(const NvmeFileOptions& options) {
  std::error_code made;
  fs::create_directories(options.directory, made);
  if (made) return FileError(options.directory, "making the directory", made.value());
  const Bytes bytes = InBlocks(options.bytes);
  SIPHON_RETURN_IF_ERROR(CheckRoomOnDrive(options.directory, bytes));
  OpenedFile opened = OpenNew(options);
  if (opened.fd < 0) return FileError(opened.name, "making it", opened.error);
  NvmeFile file(opened.fd, std::move(opened.name), opened.direct);
  if (unlink(file.name_.c_str()) != 0) return FileError(file.name_, "taking its name", errno);
  const int error = bytes > Bytes(0) ? SetAside(file.fd_, bytes.value) : 0;
  if (IsFull(error)) {
    return absl::ResourceExhaustedError(absl::StrCat("drive file ", file.name_, ": ",
                                                     FormatBytes(bytes),
                                                     " are not to be had: ", std::strerror(error)));
  }
  if (error != 0) return FileError(file.name_, "setting its blocks aside", error);
  struct stat facts {};
  if (fstat(file.fd_, &facts) != 0) return FileError(file.name_, "looking at it", errno);
  file.bytes_ = bytes;
  file.on_disk_ = std::min(OnDisk(facts), bytes);
  return file;
}

NvmeFile::NvmeFile(NvmeFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      direct_(other.direct_),
      bytes_(std::exchange(other.bytes_, Bytes(0))),
      on_disk_(std::exchange(other.on_disk_, Bytes(0))) {}

NvmeFile& NvmeFile::operator=(NvmeFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  std::swap(direct_, other.direct_);
  std::swap(bytes_, other.bytes_);
  std::swap(on_disk_, other.on_disk_);
  return *this;
}

NvmeFile::~NvmeFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status NvmeFile::CheckWhole() const {
  struct stat facts {};
  if (fstat(fd_, &facts) != 0) return FileError(name_, "looking at it", errno);
  // Who cuts it between two writes leaves a hole where the second makes it long again.
  const Bytes left = std::min(Bytes(facts.st_size), OnDisk(facts) + bytes_ - on_disk_);
  if (left >= bytes_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("drive file ", name_, ": somebody has cut it to ",
                                          left.value, " of ", bytes_.value,
                                          " bytes, and what was parked behind them is lost"));
}

}  // namespace siphon
