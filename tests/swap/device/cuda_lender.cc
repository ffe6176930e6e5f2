// A process that lends memory of a device, for tests of several processes: cuda_lender DEVICE
// BYTES. Says its handle, then answers each line that it reads:
//   sum    the checksum of all that it lends, as it sees it
//   free   gives the memory back; how often memory was freed while somebody had it open (0 on a
//          device, which does not say)
// and ends with its input.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/escaping.h"
#include "planner/status.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/cuda_rig.h"

namespace siphon {
namespace {

int Lend(int device, Bytes bytes) {
  auto arena = TheCudaModule().MakeArena(device, bytes);
  CudaBackendOptions options;
  options.device = device;
  auto backend = TheCudaModule().MakeBackend(options);
  if (!arena.ok() || !backend.ok()) {
    std::cerr << arena.status() << " " << backend.status() << "\n";
    return 1;
  }
  std::cout << absl::BytesToHexString((*arena)->handle()) << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "sum") {
      const absl::Span<const std::byte> tensors[] = {(*arena)->memory()};
      const auto sums = (*backend)->Checksums(tensors);
      SIPHON_CHECK(sums.ok(), sums.status().message());
      std::cout << sums->front() << std::endl;
    } else if (line == "free") {
      *arena = nullptr;
      std::cout << (FakeCuda::IsThere() ? FakeCuda::Get("freed_while_opened") : 0) << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return siphon::Lend(std::atoi(argv[1]), siphon::Bytes(std::atoll(argv[2])));
}
