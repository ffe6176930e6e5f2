#ifndef SIPHON_PIPELINE_TORCH_COUNTING_ALLOCATOR_H_
#define SIPHON_PIPELINE_TORCH_COUNTING_ALLOCATOR_H_

#include <memory>

#include "swap/memory_ledger.h"

namespace siphon {

// Replaces LibTorch's CPU allocator for the process by one that books every tensor byte on the
// ledger of the thread that asks (or nowhere, without one), as the kind that the thread's
// MemoryKindScope names, and refuses beyond its capacity with
// c10::OutOfMemoryError. Blocks are 64-byte aligned and remember their ledger. Freed blocks are
// kept for reuse by the same thread, so that a training step in its steady state takes no page
// faults; what a thread holds in all, kept blocks included, stays below 1.25 times the most that
// was in use at once, plus 1 MiB. The ledger counts bytes in live tensors only. Call once, before
// the first tensor; later calls do nothing.
void InstallCountingAllocator();

// Names the ledger of this thread while it lives (nests).
class LedgerScope {
 public:
  explicit LedgerScope(std::shared_ptr<MemoryLedger> ledger);
  ~LedgerScope();
  LedgerScope(const LedgerScope&) = delete;
  LedgerScope& operator=(const LedgerScope&) = delete;

 private:
  std::shared_ptr<MemoryLedger> previous_;
};

// What this thread has from the system for tensors: in use and kept for reuse. For tests and
// reports.
struct ThreadMemory {
  Bytes in_use;  // less what other threads freed: may even be negative
  Bytes kept;
};
ThreadMemory CurrentThreadMemory();
// Gives the blocks that this thread keeps back to the system.
void TrimThreadMemory();

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_COUNTING_ALLOCATOR_H_
