#ifndef SIPHON_PIPELINE_TORCH_STORAGE_MEMORY_H_
#define SIPHON_PIPELINE_TORCH_STORAGE_MEMORY_H_

#include <cstddef>

#include "absl/types/span.h"
#include "pipeline/torch/aten.h"

namespace siphon {

// A storage emptied and filled in place, so that every tensor on it stays the view that it was. A
// tensor may be looked at meanwhile, its bytes may not.

void FreeStorage(const c10::Storage& storage);
// Takes as much memory as there was, its contents unknown. Throws as LibTorch does. Requires: it is
// freed.
void RefillStorage(const c10::Storage& storage);
// Its bytes are in this memory of the caller's, of the host, from now on. Requires: it is the
// CPU's, freed, and as large.
void PlaceStorage(const c10::Storage& storage, absl::Span<std::byte> memory);
bool IsFreed(const c10::Storage& storage);
// Empty where it is freed.
absl::Span<std::byte> BytesOf(const c10::Storage& storage);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_STORAGE_MEMORY_H_
