#include "tests/support/in_process_parking.h"

#include <filesystem>
#include <utility>

#include "planner/status.h"
#include "swap/device/cpu_backend.h"

namespace siphon {
namespace {

std::unique_ptr<NvmeParking> MakeDrive(Bytes bytes) {
  auto made = NvmeParking::Make({.file = {.directory = std::filesystem::temp_directory_path(),
                                          .name = "siphon-test",
                                          .bytes = bytes}});
  SIPHON_CHECK(made.ok(), "there is room for a test on the disk");
  return *std::move(made);
}

}  // namespace

InProcessParking::InProcessParking(const WorkerParking& parking, const RateOf& rate_of) {
  CpuBackendOptions options;
  // So that copies of tiny models are of several chunks.
  if (rate_of == nullptr) options.chunk = Bytes(4096);
  std::map<ParkingPlace, ParkingMemory> memory;
  for (const auto& [place, bytes] : parking.bytes) {
    const CopyLinkId link(static_cast<int>(options.links.size()));
    options.links.push_back(rate_of == nullptr ? CopyLinkRate() : rate_of(place));
    if (place.tier == Placement::kNvmeSwap) {
      drive_ = MakeDrive(bytes);
      memory[place] = {drive_->bytes(), link};
      options.drive = DriveLink{link, [this](CopyLane lane, absl::Span<const CopyPart> parts) {
                                  return drive_->Move(lane, parts);
                                }};
      continue;
    }
    std::vector<std::byte>& made = memory_[place];
    made.resize(static_cast<size_t>(bytes.value));
    memory[place] = {absl::MakeSpan(made), link};
  }
  backend_ = std::make_unique<CpuBackend>(std::move(options));
  engine_ =
      std::make_unique<SwapEngine>(backend_.get(), parking, std::move(memory), SwapCheck::kFull);
}

}  // namespace siphon
