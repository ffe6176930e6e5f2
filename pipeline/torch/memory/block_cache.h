#ifndef SIPHON_PIPELINE_TORCH_BLOCK_CACHE_H_
#define SIPHON_PIPELINE_TORCH_BLOCK_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "swap/memory_ledger.h"

namespace siphon {

// Stands right before the bytes of every block. The bytes start on a 64-byte boundary, and
// LibTorch's raw interface (which oneDNN uses) leaves no other place to remember anything: a
// block's context has to be its address.
struct alignas(64) BlockHeader {
  size_t capacity = 0;                       // bytes after the header
  size_t booked = 0;                         // of them on the ledger
  MemoryKind kind = MemoryKind::kWorkspace;  // as which it is booked
  std::shared_ptr<MemoryLedger> ledger;
  BlockHeader* next = nullptr;  // in a free list
};
static_assert(sizeof(BlockHeader) == 64);

// One thread's memory blocks: takes freed ones again before asking the system. Sizes are rounded up
// to classes, eight to each power of two, so that at most an eighth is wasted.
//
// Thread-safety: one thread; a block may come from the cache of another.
class BlockCache {
 public:
  BlockCache() = default;
  ~BlockCache() { Trim(0); }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // A block of at least `bytes`, its contents unknown; nullptr when the system has no memory.
  BlockHeader* Take(size_t bytes);
  void Give(BlockHeader* block);
  // Returns kept blocks to the system until at most `keep` bytes are kept, classes that were not
  // used for longest first.
  void Trim(size_t keep);

  int64_t in_use() const { return in_use_; }
  int64_t kept() const { return kept_; }

  // Without a cache: straight from and to the system.
  static BlockHeader* TakeFromSystem(size_t bytes);
  static void GiveToSystem(BlockHeader* block);

 private:
  static constexpr int kClasses = 8 * 58;  // up to 2^63 bytes
  struct FreeList {
    BlockHeader* first = nullptr;
    uint64_t last_use = 0;
  };

  std::array<FreeList, kClasses> lists_;
  uint64_t clock_ = 0;
  int64_t in_use_ =
      0;  // capacities; what another thread freed stays in, what it allocated goes out
  int64_t most_in_use_ = 0;
  int64_t kept_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_BLOCK_CACHE_H_
