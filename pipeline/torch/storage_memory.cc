#include "pipeline/torch/storage_memory.h"

namespace siphon {

void FreeStorage(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, at::kCPU));
}

void RefillStorage(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(c10::GetAllocator(at::kCPU)->allocate(storage.nbytes()));
}

bool IsFreed(const c10::Storage& storage) {
  return storage.data() == nullptr && storage.nbytes() > 0;
}

absl::Span<std::byte> BytesOf(const c10::Storage& storage) {
  if (IsFreed(storage)) return {};
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

}  // namespace siphon
