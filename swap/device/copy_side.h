#ifndef SIPHON_SWAP_DEVICE_COPY_SIDE_H_
#define SIPHON_SWAP_DEVICE_COPY_SIDE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "planner/status.h"

namespace siphon {

// Bytes of the file that a worker has on a drive; which file, its backend knows.
struct DriveRange {
  int64_t offset = 0;
  size_t bytes = 0;
  friend bool operator==(const DriveRange&, const DriveRange&) = default;
};

// The bytes of one side of a copy: in memory, or on the worker's drive. Cut like a span. `Byte` is
// std::byte, const where it is read from.
template <typename Byte>
class CopySide {
 public:
  CopySide() = default;
  CopySide(absl::Span<Byte> memory)  // NOLINT: a span is the usual side
      : data_(memory.data()), size_(memory.size()) {}
  explicit CopySide(DriveRange range)
      : on_drive_(true), offset_(range.offset), size_(range.bytes) {}
  // What may be written may be read.
  template <typename Other, typename = std::enable_if_t<std::is_same_v<const Other, Byte> &&
                                                        !std::is_same_v<Other, Byte>>>
  CopySide(const CopySide<Other>& other)  // NOLINT: as a span of bytes is one of const bytes
      : CopySide(other.on_drive() ? CopySide(DriveRange{other.offset(), other.size()})
                                  : CopySide(absl::Span<Byte>(other.data(), other.size()))) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool on_drive() const { return on_drive_; }
  // Requires: in memory.
  Byte* data() const {
    SIPHON_CHECK(!on_drive_, "bytes on a drive have no address");
    return data_;
  }
  absl::Span<Byte> memory() const { return {data(), size_}; }
  // In the file. Requires: on a drive.
  int64_t offset() const {
    SIPHON_CHECK(on_drive_, "bytes in memory are in no file");
    return offset_;
  }

  // At most `bytes` from `begin` on. Requires: begin is not behind the end.
  CopySide subspan(size_t begin, size_t bytes = absl::Span<Byte>::npos) const {
    SIPHON_CHECK(begin <= size_, "a part begins within the whole");
    CopySide part = *this;
    part.size_ = bytes < size_ - begin ? bytes : size_ - begin;
    if (on_drive_) {
      part.offset_ += static_cast<int64_t>(begin);
    } else if (data_ != nullptr) {
      part.data_ += begin;
    }
    return part;
  }
  // Whether `next` goes on where this ends.
  bool GoesOnIn(const CopySide& next) const {
    if (on_drive_ != next.on_drive_) return false;
    return on_drive_ ? offset_ + static_cast<int64_t>(size_) == next.offset_
                     : data_ + size_ == next.data_;
  }
  // This, longer by what follows it.
  CopySide Extended(size_t bytes) const {
    CopySide longer = *this;
    longer.size_ += bytes;
    return longer;
  }

 private:
  bool on_drive_ = false;
  Byte* data_ = nullptr;  // in memory
  int64_t offset_ = 0;    // on a drive
  size_t size_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_COPY_SIDE_H_
