// Takes the memory of device 0 from everybody else: all but KEEP MiB of what is free, until
// standard input ends. For tests of what a job does then.
//
//   gpu_hog KEEP_MIB     prints one line once it has the memory

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kMebibyte = 1 << 20;
// An allocation: small enough that gaps in the device's memory are filled as well.
constexpr size_t kMostAtOnce = 1024 * kMebibyte;
constexpr size_t kLeastAtOnce = 2 * kMebibyte;

size_t Free() {
  size_t free = 0;
  size_t total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess) {
    std::fprintf(stderr, "gpu_hog: %s\n", cudaGetErrorName(error));
    std::exit(1);
  }
  return free;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_hog KEEP_MIB\n");
    return 2;
  }
  const size_t keep = static_cast<size_t>(std::atoll(argv[1])) * kMebibyte;
  std::vector<void*> taken;
  size_t bytes = 0;
  size_t at_once = kMostAtOnce;
  for (size_t free = Free(); free > keep && at_once >= kLeastAtOnce; free = Free()) {
    const size_t size = std::min(at_once, (free - keep) / kLeastAtOnce * kLeastAtOnce);
    void* memory = nullptr;
    if (size > 0 && cudaMalloc(&memory, size) == cudaSuccess) {
      taken.push_back(memory);
      bytes += size;
      continue;
    }
    static_cast<void>(cudaGetLastError());
    at_once /= 2;
  }
  std::printf("gpu_hog has %zu MiB, %zu MiB are left\n", bytes / kMebibyte, Free() / kMebibyte);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  for (void* const memory : taken) static_cast<void>(cudaFree(memory));
  return 0;
}
