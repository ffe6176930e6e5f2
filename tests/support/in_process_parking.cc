#include "tests/support/in_process_parking.h"

#include <utility>

#include "swap/device/cpu_backend.h"

namespace siphon {

InProcessParking::InProcessParking(const WorkerParking& parking, const RateOf& rate_of) {
  CpuBackendOptions options;
  // So that copies of tiny models are of several chunks.
  if (rate_of == nullptr) options.chunk = Bytes(4096);
  std::map<ParkingPlace, ParkingMemory> memory;
  for (const auto& [place, bytes] : parking.bytes) {
    std::vector<std::byte>& made = memory_[place];
    made.resize(static_cast<size_t>(bytes.value));
    memory[place] = {absl::MakeSpan(made), CopyLinkId(static_cast<int>(options.links.size()))};
    options.links.push_back(rate_of == nullptr ? CopyLinkRate() : rate_of(place));
  }
  backend_ = std::make_unique<CpuBackend>(std::move(options));
  engine_ =
      std::make_unique<SwapEngine>(backend_.get(), parking, std::move(memory), SwapCheck::kFull);
}

}  // namespace siphon
