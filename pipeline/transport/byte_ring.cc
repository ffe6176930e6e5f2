#include "pipeline/transport/byte_ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace siphon {
namespace {

// A long copy is published in pieces, so that the other side copies out what this one has already
// copied in.
constexpr int64_t kPublishBytes = 256 * 1024;  // half of a common second-level cache

}  // namespace

ByteRing::ByteRing(RingHeader* header, int64_t capacity)
    : header_(header), data_(reinterpret_cast<std::byte*>(header + 1)), capacity_(capacity) {}

template <typename CopyPiece>
void ByteRing::CopyAround(uint64_t position, int64_t bytes, CopyPiece copy_piece) const {
  const int64_t start = static_cast<int64_t>(position % static_cast<uint64_t>(capacity_));
  const int64_t before_end = std::min(bytes, capacity_ - start);
  copy_piece(data_ + start, 0, before_end);
  if (before_end < bytes) copy_piece(data_, before_end, bytes - before_end);
}

// Positions are stored and loaded sequentially consistent because the doorbell's promise builds on
// it.

int64_t ByteRing::Write(absl::Span<const std::byte> bytes) {
  std::atomic_ref<uint64_t> written(header_->written);
  uint64_t position = written.load(std::memory_order_relaxed);  // ours
  int64_t done = 0;
  while (done < static_cast<int64_t>(bytes.size())) {
    const uint64_t read = std::atomic_ref<uint64_t>(header_->read).load();
    const int64_t room = capacity_ - static_cast<int64_t>(position - read);
    const int64_t piece =
        std::min({room, static_cast<int64_t>(bytes.size()) - done, kPublishBytes});
    if (piece == 0) break;
    CopyAround(position, piece, [&](std::byte* ring, int64_t offset, int64_t size) {
      std::memcpy(ring, bytes.data() + done + offset, static_cast<size_t>(size));
    });
    position += static_cast<uint64_t>(piece);
    done += piece;
    written.store(position);
  }
  return done;
}

int64_t ByteRing::Read(absl::Span<std::byte> bytes) {
  std::atomic_ref<uint64_t> read(header_->read);
  uint64_t position = read.load(std::memory_order_relaxed);  // ours
  int64_t done = 0;
  while (done < static_cast<int64_t>(bytes.size())) {
    const uint64_t written = std::atomic_ref<uint64_t>(header_->written).load();
    const int64_t piece = std::min({static_cast<int64_t>(written - position),
                                    static_cast<int64_t>(bytes.size()) - done, kPublishBytes});
    if (piece == 0) break;
    CopyAround(position, piece, [&](std::byte* ring, int64_t offset, int64_t size) {
      std::memcpy(bytes.data() + done + offset, ring, static_cast<size_t>(size));
    });
    position += static_cast<uint64_t>(piece);
    done += piece;
    read.store(position);
  }
  return done;
}

int64_t ByteRing::Skip(int64_t bytes) {
  std::atomic_ref<uint64_t> read(header_->read);
  const uint64_t position = read.load(std::memory_order_relaxed);
  const uint64_t written = std::atomic_ref<uint64_t>(header_->written).load();
  const int64_t piece = std::min(static_cast<int64_t>(written - position), bytes);
  if (piece > 0) read.store(position + static_cast<uint64_t>(piece));
  return piece;
}

void ByteRing::Refuse() { std::atomic_ref<uint64_t>(header_->refused).store(1); }

bool ByteRing::refused() const { return std::atomic_ref<uint64_t>(header_->refused).load() != 0; }

}  // namespace siphon
