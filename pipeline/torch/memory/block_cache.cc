#include "pipeline/torch/memory/block_cache.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace siphon {
namespace {

constexpr size_t kAlignment = 64;
constexpr int64_t kSlack = int64_t{1} << 20;
constexpr size_t kLargest = size_t{1} << 62;

struct SizeClass {
  int index = 0;
  size_t bytes = 0;
};

// Multiples of 64 up to 512 bytes, then eight classes to each power of two.
SizeClass ClassOf(size_t bytes) {
  const size_t units = std::max<size_t>((bytes + kAlignment - 1) / kAlignment, 1);
  if (units <= 8) return {static_cast<int>(units - 1), units * kAlignment};
  const int power = std::bit_width(units - 1) - 4;  // units - 1 has 4 leading bits after the shift
  const size_t step = ((units - 1) >> power) + 1;   // 9 .. 16
  return {8 * (power + 1) + static_cast<int>(step - 9), (step << power) * kAlignment};
}

}  // namespace

BlockHeader* BlockCache::TakeFromSystem(size_t bytes) {
  if (bytes > kLargest) return nullptr;
  const size_t capacity = ClassOf(bytes).bytes;
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, sizeof(BlockHeader) + capacity) != 0) return nullptr;
  BlockHeader* block = new (memory) BlockHeader;
  block->capacity = capacity;
  return block;
}

void BlockCache::GiveToSystem(BlockHeader* block) {
  block->~BlockHeader();
  std::free(block);
}

BlockHeader* BlockCache::Take(size_t bytes) {
  if (bytes > kLargest) return nullptr;
  const SizeClass size = ClassOf(bytes);
  FreeList& list = lists_[size.index];
  list.last_use = ++clock_;
  BlockHeader* block = list.first;
  if (block != nullptr) {
    list.first = block->next;
    block->next = nullptr;
    kept_ -= static_cast<int64_t>(block->capacity);
  } else {
    const int64_t wanted = static_cast<int64_t>(size.bytes);
    const int64_t most = std::max(most_in_use_, in_use_ + wanted);
    const int64_t room = most + most / 4 + kSlack - in_use_ - wanted;
    if (kept_ > room) Trim(static_cast<size_t>(std::max<int64_t>(room, 0)));
    block = TakeFromSystem(bytes);
    if (block == nullptr) {  // what is kept may be just what the system lacks
      Trim(0);
      block = TakeFromSystem(bytes);
    }
    if (block == nullptr) return nullptr;
  }
  in_use_ += static_cast<int64_t>(block->capacity);
  most_in_use_ = std::max(most_in_use_, in_use_);
  return block;
}

void BlockCache::Give(BlockHeader* block) {
  FreeList& list = lists_[ClassOf(block->capacity).index];
  block->next = list.first;
  list.first = block;
  in_use_ -= static_cast<int64_t>(block->capacity);
  kept_ += static_cast<int64_t>(block->capacity);
  // Blocks that others allocated and this thread frees would pile up: the bound holds for them too.
  const int64_t room = most_in_use_ + most_in_use_ / 4 + kSlack - std::max<int64_t>(in_use_, 0);
  if (kept_ > room) Trim(static_cast<size_t>(std::max<int64_t>(room, 0)));
}

void BlockCache::Trim(size_t keep) {
  while (kept_ > static_cast<int64_t>(keep)) {
    FreeList* oldest = nullptr;
    for (FreeList& list : lists_) {
      if (list.first != nullptr && (oldest == nullptr || list.last_use < oldest->last_use)) {
        oldest = &list;
      }
    }
    while (oldest->first != nullptr && kept_ > static_cast<int64_t>(keep)) {
      BlockHeader* block = oldest->first;
      oldest->first = block->next;
      kept_ -= static_cast<int64_t>(block->capacity);
      GiveToSystem(block);
    }
  }
}

}  // namespace siphon
