#include "tests/support/in_process_parking.h"

#include <utility>

#include "swap/device/cpu_backend.h"

namespace siphon {

InProcessParking::InProcessParking(const WorkerParking& parking) {
  CpuBackendOptions options;
  options.chunk = Bytes(4096);  // so that copies of tiny models are of several chunks
  std::map<ParkingPlace, ParkingMemory> memory;
  for (const auto& [place, bytes] : parking.bytes) {
    std::vector<std::byte>& made = memory_[place];
    made.resize(static_cast<size_t>(bytes.value));
    memory[place] = {absl::MakeSpan(made), CopyLinkId(static_cast<int>(options.links.size()))};
    options.links.emplace_back();
  }
  backend_ = std::make_unique<CpuBackend>(std::move(options));
  engine_ =
      std::make_unique<SwapEngine>(backend_.get(), parking, std::move(memory), SwapCheck::kFull);
}

}  // namespace siphon
