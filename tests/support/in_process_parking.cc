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

InProcessParking::InProcessParking(const WorkerParking& parking,
                                   const InProcessParkingOptions& test) {
  CpuBackendOptions options;
  // So that copies of tiny models are of several chunks.
  if (test.rate_of == nullptr) options.chunk = Bytes(4096);
  const auto rate = [&](const ParkingPlace& place) {
    return test.rate_of == nullptr ? CopyLinkRate() : test.rate_of(place);
  };
  constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};
  options.links.push_back(rate(kHost));
  std::map<ParkingPlace, ParkingMemory> memory;
  for (const auto& [place, bytes] : parking.bytes) {
    CopyLinkId link(0);
    if (place != kHost) {
      link = CopyLinkId(static_cast<int>(options.links.size()));
      options.links.push_back(rate(place));
    }
    if (place.tier == Placement::kNvmeSwap) {
      drive_ = MakeDrive(bytes);
      memory[place] = {drive_->bytes(), link};
      options.drive = DriveLink{link, [this](CopyLane lane, absl::Span<const CopyPart> parts) {
                                  return drive_->Move(lane, parts);
                                }};
      continue;
    }
    if (place.tier == Placement::kPeerSwap && test.lent != nullptr) {
      memory[place] = {test.lent(place), link};
      continue;
    }
    std::vector<std::byte>& made = memory_[place];
    made.resize(static_cast<size_t>(bytes.value));
    memory[place] = {absl::MakeSpan(made), link};
  }
  if (test.adjust != nullptr) test.adjust(options);
  backend_ = std::make_unique<CpuBackend>(std::move(options));
  engine_ =
      std::make_unique<SwapEngine>(backend_.get(), parking, std::move(memory), SwapCheck::kFull);
}

absl::Span<std::byte> InProcessParking::HostMemory(Bytes bytes) {
  host_memory_ = std::vector<HostLine>(static_cast<size_t>(bytes.value) / sizeof(HostLine) + 1);
  return {host_memory_[0].bytes, static_cast<size_t>(bytes.value)};
}

}  // namespace siphon
