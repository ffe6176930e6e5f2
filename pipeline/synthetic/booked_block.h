#ifndef SIPHON_PIPELINE_SYNTHETIC_BOOKED_BLOCK_H_
#define SIPHON_PIPELINE_SYNTHETIC_BOOKED_BLOCK_H_

#include <cstddef>
#include <memory>
#include <new>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/memory/memory_kind.h"
#include "planner/units.h"
#include "swap/memory_ledger.h"

namespace siphon {

// Memory that stands on a worker's books as long as it lives, 64-byte aligned.
//
// Invariant: exactly size() bytes are on the books. Thread-safety: one thread.
class BookedBlock {
 public:
  // On no books, and empty.
  BookedBlock() = default;
  // The bytes are not set. The ledger outlives the block. Errors: ResourceExhausted, with what was
  // asked for and what is free.
  static absl::StatusOr<BookedBlock> Take(MemoryLedger* ledger, Bytes size, MemoryKind kind);
  BookedBlock(BookedBlock&& other) noexcept;
  BookedBlock& operator=(BookedBlock&& other) noexcept;
  ~BookedBlock();

  Bytes size() const { return size_; }
  absl::Span<std::byte> bytes() const { return {memory_.get(), static_cast<size_t>(size_.value)}; }
  // Keeps the first bytes. Errors: as Take; the block is then what it was.
  absl::Status Resize(Bytes size);

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Deleter {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  using Memory = std::unique_ptr<std::byte, Deleter>;

  static Memory Allocate(Bytes size);

  MemoryLedger* ledger_ = nullptr;
  MemoryKind kind_ = MemoryKind::kWorkspace;
  Bytes size_;
  Memory memory_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_BOOKED_BLOCK_H_
