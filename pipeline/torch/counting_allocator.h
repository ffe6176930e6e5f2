#ifndef SIPHON_PIPELINE_TORCH_COUNTING_ALLOCATOR_H_
#define SIPHON_PIPELINE_TORCH_COUNTING_ALLOCATOR_H_

#include <memory>

#include "swap/memory_ledger.h"

namespace siphon {

// Replaces LibTorch's CPU allocator for the process by one that books every tensor byte on the
// ledger of the thread that asks (or nowhere, without one) and refuses beyond its capacity with
// c10::OutOfMemoryError. Blocks are 64-byte aligned and remember their ledger. Freed blocks are
// kept for reuse by the same thread, so that a training step in its steady state takes no page
// faults. Call once, before the first tensor; later calls do nothing.
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

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_COUNTING_ALLOCATOR_H_
