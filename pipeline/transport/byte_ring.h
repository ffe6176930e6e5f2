#ifndef SIPHON_PIPELINE_TRANSPORT_BYTE_RING_H_
#define SIPHON_PIPELINE_TRANSPORT_BYTE_RING_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace siphon {

// Positions of a ring, counted in bytes since the start and never wrapped; the data follow behind.
// Each on a cache line of its own, since each is written by one side only. Zero bytes are a valid,
// empty ring.
struct RingHeader {
  alignas(64) uint64_t written;
  alignas(64) uint64_t read;
  uint64_t refused;  // 1: the consumer will read no more
};
static_assert(sizeof(RingHeader) == 128);

// One end of a single-producer single-consumer stream of bytes in shared memory.
//
// Thread-safety: one producer calls Write, one consumer calls Read, in any threads or processes.
// What was written before a position was published is visible to the reader of that position.
class ByteRing {
 public:
  // `capacity` bytes of data lie right behind `header`.
  ByteRing(RingHeader* header, int64_t capacity);

  // Copies as many bytes as there is room for; returns how many.
  int64_t Write(absl::Span<const std::byte> bytes);
  // Copies as many bytes as there are; returns how many.
  int64_t Read(absl::Span<std::byte> bytes);
  // Reads without copying.
  int64_t Skip(int64_t bytes);

  // By the consumer: tells the producer that nothing will be read any more.
  void Refuse();
  bool refused() const;

 private:
  // Copies at most `bytes` between the ring at `position` and `data`, round the end.
  template <typename CopyPiece>
  void CopyAround(uint64_t position, int64_t bytes, CopyPiece copy_piece) const;

  RingHeader* header_;
  std::byte* data_;
  int64_t capacity_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_BYTE_RING_H_
