#include "pipeline/torch/memory/storage_memory.h"

#include "planner/status.h"

namespace siphon {

void FreeStorage(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
}

void RefillStorage(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(c10::GetAllocator(storage.device_type())->allocate(storage.nbytes()));
}

void PlaceStorage(const c10::Storage& storage, absl::Span<std::byte> memory) {
  SIPHON_CHECK(storage.device().is_cpu(), "a device's memory is not the host's");
  SIPHON_CHECK(IsFreed(storage) && memory.size() == storage.nbytes(), "it is freed, and as large");
  storage.set_data_ptr_noswap(at::DataPtr(memory.data(), at::kCPU));
}

bool IsFreed(const c10::Storage& storage) {
  return storage.data() == nullptr && storage.nbytes() > 0;
}

absl::Span<std::byte> BytesOf(const c10::Storage& storage) {
  if (IsFreed(storage)) return {};
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

}  // namespace siphon
