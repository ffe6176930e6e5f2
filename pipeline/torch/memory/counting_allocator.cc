#include "pipeline/torch/memory/counting_allocator.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/memory/block_cache.h"

namespace siphon {
namespace {

std::shared_ptr<MemoryLedger>& LedgerOfThread() {
  thread_local std::shared_ptr<MemoryLedger> ledger;
  return ledger;
}

// Tensors in static and thread-local objects are freed after the thread's cache was destroyed; the
// plain pointer outlives it and says so.
thread_local BlockCache* cache_of_thread = nullptr;
thread_local bool cache_is_gone = false;

struct CacheOwner {
  CacheOwner() { cache_of_thread = &cache; }
  ~CacheOwner() {
    cache_of_thread = nullptr;
    cache_is_gone = true;
  }
  BlockCache cache;
};

BlockCache* CacheOfThread() {
  if (cache_of_thread == nullptr && !cache_is_gone) {
    thread_local CacheOwner owner;
    cache_of_thread = &owner.cache;
  }
  return cache_of_thread;
}

// "parameters 4000, gradients 4000": bytes.
std::string TextOf(const MemoryByKind& memory) {
  std::string text;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    if (memory.bytes[kind] == Bytes(0)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", MemoryKindName(static_cast<MemoryKind>(kind)),
                    " ", memory.bytes[kind].value);
  }
  return text.empty() ? "nothing" : text;
}

void Refuse(size_t bytes, const MemoryLedger& ledger) {
  const int64_t capacity = ledger.capacity().value;
  const int64_t used = ledger.used().value;
  TORCH_CHECK_WITH(OutOfMemoryError, false, "memory is full: asked for ", bytes, " bytes, ",
                   capacity > used ? capacity - used : 0, " bytes free of a capacity of ", capacity,
                   " (held: ", TextOf(ledger.UsedByKind()), ")");
}

void FreeBlock(void* data) {
  if (data == nullptr) return;
  BlockHeader* block = static_cast<BlockHeader*>(data) - 1;
  if (block->ledger != nullptr) {
    block->ledger->Give(Bytes(static_cast<int64_t>(block->booked)), block->kind);
    block->ledger.reset();
  }
  if (BlockCache* cache = CacheOfThread()) {
    cache->Give(block);
  } else {
    BlockCache::GiveToSystem(block);
  }
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &FreeBlock, cpu};
    const std::shared_ptr<MemoryLedger>& ledger = LedgerOfThread();
    const MemoryKind kind = MemoryKindScope::Current();
    // A size beyond 63 bits is nonsense that no ledger can hold; the system refuses it below.
    const bool countable = bytes <= static_cast<size_t>(INT64_MAX / 2);
    if (ledger != nullptr && countable && !ledger->Take(Bytes(static_cast<int64_t>(bytes)), kind)) {
      Refuse(bytes, *ledger);
    }
    BlockCache* cache = CacheOfThread();
    BlockHeader* block = !countable         ? nullptr
                         : cache != nullptr ? cache->Take(bytes)
                                            : BlockCache::TakeFromSystem(bytes);
    if (block == nullptr) {
      if (ledger != nullptr && countable) ledger->Give(Bytes(static_cast<int64_t>(bytes)), kind);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the machine's memory is full: asked for ", bytes,
                       " bytes");
    }
    block->ledger = ledger;
    block->booked = bytes;
    block->kind = kind;
    void* data = block + 1;
    return {data, data, &FreeBlock, cpu};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &FreeBlock; }

  void copy_data(void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }
};

}  // namespace

void InstallCountingAllocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr uint8_t kAboveDefault = 100;
    // Never destroyed: static objects free tensors after main has ended.
    c10::SetCPUAllocator(new CountingAllocator, kAboveDefault);
  });
}

LedgerScope::LedgerScope(std::shared_ptr<MemoryLedger> ledger)
    : previous_(std::exchange(LedgerOfThread(), std::move(ledger))) {}

LedgerScope::~LedgerScope() { LedgerOfThread() = std::move(previous_); }

ThreadMemory CurrentThreadMemory() {
  const BlockCache* cache = CacheOfThread();
  if (cache == nullptr) return {};
  return {Bytes(cache->in_use()), Bytes(cache->kept())};
}

void TrimThreadMemory() {
  if (BlockCache* cache = CacheOfThread()) cache->Trim(0);
}

}  // namespace siphon
