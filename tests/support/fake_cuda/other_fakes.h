#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_OTHER_FAKES_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_OTHER_FAKES_H_

#include <cstddef>
#include <cstdint>

// What the fake runtime gives to fakes of other libraries that work on its devices
// (tests/support/fake_nccl): the real ones ask the driver.
extern "C" {

struct siphon_fake_cuda_place {
  int device;
  int64_t serial;  // of the allocation: its bytes are <directory>/memory.<serial>
  int64_t offset;  // in it
  char* real;      // where this process has them
};
// 0, or -1 for what is not, or not any more, memory of a device.
int siphon_fake_cuda_find(const void* address, size_t bytes, siphon_fake_cuda_place* place);

// Memory of a device that nobody reads or writes; a number, or 0 when there is not enough.
int64_t siphon_fake_cuda_take(int device, int64_t bytes);
void siphon_fake_cuda_give_back(int64_t serial);

// Of this process: those of one host see one another's devices (board.h).
uint64_t siphon_fake_cuda_host();

}  // extern "C"

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_OTHER_FAKES_H_
