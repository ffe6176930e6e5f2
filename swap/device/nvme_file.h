#ifndef SIPHON_SWAP_DEVICE_NVME_FILE_H_
#define SIPHON_SWAP_DEVICE_NVME_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/units.h"

namespace siphon {

// What stays free on a drive beside the file: checkpoints and metrics may go there too.
inline constexpr Bytes kDriveMargin{64 << 20};

struct NvmeFileOptions {
  std::string directory;  // made if it is not there
  std::string name;       // what the file's name begins with
  Bytes bytes;
  // kNever: through the page cache, which is memory that nobody counts.
  enum class Direct { kWherePossible, kNever } direct = Direct::kWherePossible;
};

// A file to park tensors in. Its blocks are set aside when it is made, and it has no name from then
// on: whoever removes it, or its directory, changes nothing, and nothing is left when its worker
// ends, however that ends.
class NvmeFile {
 public:
  // Errors: ResourceExhausted when the drive has not that much space and kDriveMargin; Internal
  // when it cannot be written.
  static absl::StatusOr<NvmeFile> Make(const NvmeFileOptions& options);
  NvmeFile(NvmeFile&& other) noexcept;
  NvmeFile& operator=(NvmeFile&& other) noexcept;
  ~NvmeFile();

  int fd() const { return fd_; }
  Bytes bytes() const { return bytes_; }  // as asked for, up to the next kNvmeBlock
  // Whether it goes past the page cache (O_DIRECT); tmpfs and some others cannot.
  bool direct() const { return direct_; }
  const std::string& name() const { return name_; }  // that it had, for messages
  // Internal when it has become shorter or has holes: what was parked there is gone.
  absl::Status CheckWhole() const;

 private:
  NvmeFile(int fd, std::string name, bool direct)
      : fd_(fd), name_(std::move(name)), direct_(direct) {}

  int fd_ = -1;
  std::string name_;
  bool direct_ = false;
  Bytes bytes_;
  Bytes on_disk_;  // of which the file system says that they have blocks; some say less than it has
};

// Space of the drive that has `directory`, or will have it, for a user who is not root. Errors:
// Internal.
absl::StatusOr<Bytes> FreeOnDrive(const std::string& directory);

// OK when the drive of `directory` has so much space and kDriveMargin. Errors: ResourceExhausted
// with what it has; as FreeOnDrive.
absl::Status CheckRoomOnDrive(const std::string& directory, Bytes bytes);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_NVME_FILE_H_
