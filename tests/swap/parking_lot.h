#ifndef SIPHON_TESTS_SWAP_PARKING_LOT_H_
#define SIPHON_TESTS_SWAP_PARKING_LOT_H_

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "planner/status.h"
#include "swap/device/cpu_backend.h"
#include "swap/device/nvme_parking.h"
#include "swap/parking_layout.h"
#include "swap/swap_engine.h"

namespace siphon {

// Memory for all places of a layout, and a file for one on a drive; each place has a link of its
// own, in the order of places.
class ParkingLot {
 public:
  explicit ParkingLot(const WorkerParking& parking, const NvmeParkingOptions& drive = {}) {
    for (const auto& [place, bytes] : parking.bytes) {
      const bool on_drive = place.tier == Placement::kNvmeSwap;
      memory_[place].resize(on_drive ? 0 : static_cast<size_t>(bytes.value));
      if (!on_drive) continue;
      NvmeParkingOptions options = drive;
      if (options.file.directory.empty()) {
        options.file.directory = std::filesystem::temp_directory_path().string();
      }
      options.file.name = "siphon-test";
      options.file.bytes = bytes;
      auto made = NvmeParking::Make(options);
      SIPHON_CHECK(made.ok(), "there is room for a test on the disk");
      drive_ = *std::move(made);
    }
  }
  std::map<ParkingPlace, ParkingMemory> Memory() {
    std::map<ParkingPlace, ParkingMemory> memory;
    for (auto& [place, bytes] : memory_) {
      const CopyLinkId link(static_cast<int>(memory.size()));
      if (place.tier == Placement::kNvmeSwap) {
        memory[place] = {drive_->bytes(), link};
      } else {
        memory[place] = {absl::MakeSpan(bytes), link};
      }
    }
    return memory;
  }
  // For the backend; none without a place on a drive, which outlives that.
  std::optional<DriveLink> Drive() {
    if (drive_ == nullptr) return std::nullopt;
    const auto place = memory_.find({.tier = Placement::kNvmeSwap});
    const CopyLinkId link(static_cast<int>(std::distance(memory_.begin(), place)));
    return DriveLink{link, [this](CopyLane lane, absl::Span<const CopyPart> parts) {
                       return drive_->Move(lane, parts);
                     }};
  }
  NvmeParking& drive() { return *drive_; }
  std::vector<std::byte>& At(const ParkingPlace& place) { return memory_.at(place); }
  int Links() const { return static_cast<int>(memory_.size()); }

 private:
  std::map<ParkingPlace, std::vector<std::byte>> memory_;
  std::unique_ptr<NvmeParking> drive_;
};

// `slots` slots of `pieces` for group `group` of stage 0, as LayOutParking lays them out.
inline void AddSlots(WorkerParking& parking, int group, int slots,
                     const std::vector<std::pair<ParkingPlace, int64_t>>& pieces) {
  for (int slot = 0; slot < slots; ++slot) {
    ParkingSlot& added = parking.slots[{StageId(0), GroupId(group)}].emplace_back();
    for (const auto& [place, bytes] : pieces) {
      Bytes& used = parking.bytes[place];
      added.pieces.push_back({place, used, Bytes(bytes)});
      used += Bytes((bytes + 63) / 64 * 64);
    }
  }
}

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_PARKING_LOT_H_
