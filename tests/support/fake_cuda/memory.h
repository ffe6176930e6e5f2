#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_MEMORY_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace siphon::fake_cuda {

// Memory as copies see it.
struct Place {
  enum class Kind { kPageable, kLocked, kDevice };
  Kind kind = Kind::kPageable;
  int device = 0;
  char* real = nullptr;  // where the bytes are
  // Of a device's memory: its allocation on the board, and where in it.
  int64_t serial = 0;
  int64_t offset = 0;
  cudaError_t error = cudaSuccess;
};

// What this process knows of memory. Addresses of devices can neither be read nor written by the
// host: the bytes are mapped a second time elsewhere, which only copies know, so that a test that
// touches a device's memory dies. Addresses that were freed stay taken, so that late copies are
// errors.
//
// Thread-safety: any thread.
class AddressBook {
 public:
  static AddressBook& The();

  cudaError_t Take(int device, size_t bytes, void** address);
  cudaError_t Free(void* address);  // the caller has seen to it that nothing is under way
  cudaError_t Export(cudaIpcMemHandle_t* handle, const void* address);
  cudaError_t Open(const cudaIpcMemHandle_t& handle, void** address);
  cudaError_t Close(void* address);
  cudaError_t Lock(void* address, size_t bytes);
  cudaError_t Unlock(void* address);

  Place Find(const void* address, size_t bytes) const;

 private:
  enum class Origin { kOwn, kOpened, kGone };
  struct Range {
    size_t bytes = 0;
    Origin origin = Origin::kOwn;
    int device = 0;
    int64_t serial = 0;
    char* real = nullptr;
    int opened = 0;  // times
  };
  using Ranges = std::map<uintptr_t, Range>;

  // Maps the file of an allocation; null: it is gone.
  static char* Map(int64_t serial, size_t bytes);
  static void* Reserve(size_t bytes);
  // The range that holds the address.
  Ranges::const_iterator Holder(const void* address) const;

  mutable std::mutex mutex_;
  Ranges devices_;
  std::map<uintptr_t, size_t> locked_;
};

}  // namespace siphon::fake_cuda

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_MEMORY_H_
