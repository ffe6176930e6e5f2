#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_STATE_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_STATE_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace siphon::fake_cuda {

// What tests set and ask for (fake_cuda.h), of this process.
struct State {
  std::atomic<int64_t> devices, memory, rate, delay_ns, fail_copy, fail_code, fail_least,
      fail_start, fail_record, fail_open, apart;
  std::atomic<int64_t> copies, counted, starts, opens, records, pageable, most_queued,
      freed_while_opened, opened, streams, events, kernels, allocations, contexts, locked,
      most_locked;
  // What every call returns from now on.
  std::atomic<int> sticky;

  // First values of what is set, zero for what counts up.
  void Reset();
};
State& TheState();

// What the calls of the runtime end with: remembers errors for cudaGetLastError.
cudaError_t Finish(cudaError_t error);
cudaError_t TakeLastError();
cudaError_t LastError();

// An error that every call returns: no driver, no device, or one that sticks.
cudaError_t StandingError();

// The thread's current device.
int& CurrentDevice();
bool IsDevice(int device);
// Whether one device may use the other's memory.
bool AreTogether(int device, int peer);

}  // namespace siphon::fake_cuda

#define FAKE_CUDA_ENTER()                                                \
  do {                                                                   \
    if (const cudaError_t standing = siphon::fake_cuda::StandingError(); \
        standing != cudaSuccess) {                                       \
      return siphon::fake_cuda::Finish(standing);                        \
    }                                                                    \
  } while (false)

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_STATE_H_
