#ifndef SIPHON_TESTS_SWAP_RIG_PARKING_H_
#define SIPHON_TESTS_SWAP_RIG_PARKING_H_

#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "planner/status.h"
#include "swap/device/nvme_parking.h"
#include "swap/parking_layout.h"
#include "swap/swap_engine.h"
#include "tests/swap/device/backend_rig.h"

namespace siphon {

// Memory of a rig for all places of a layout, and a file for one on a drive; each place has a link
// of its own, in the order of places.
class RigParking {
 public:
  RigParking(BackendRig& rig, const WorkerParking& parking, NvmeParkingOptions drive = {}) {
    for (const auto& [place, bytes] : parking.bytes) {
      const CopyLinkId link(static_cast<int>(memory_.size()));
      if (place.tier == Placement::kNvmeSwap) {
        MakeDrive(rig, bytes, std::move(drive), link);
        continue;
      }
      const BackendRig::Where where = place.tier == Placement::kHostSwap
                                          ? BackendRig::Where::kHost
                                          : BackendRig::Where::kLender;
      memory_[place] = {rig.Take(where, static_cast<size_t>(bytes.value)), link};
    }
  }
  const std::map<ParkingPlace, ParkingMemory>& Memory() const { return memory_; }
  // What moves between the worker and these places.
  RigBackend Backend(int64_t chunk) const {
    return {.links = static_cast<int>(memory_.size()), .chunk = chunk, .drive = link_};
  }
  NvmeParking& drive() { return *drive_; }

 private:
  void MakeDrive(BackendRig& rig, Bytes bytes, NvmeParkingOptions options, CopyLinkId link) {
    if (options.file.directory.empty()) {
      options.file.directory = std::filesystem::temp_directory_path().string();
    }
    options.file.name = "siphon-test";
    options.file.bytes = bytes;
    options.mover.copy = [&rig](void* to, const void* from, size_t size) {
      return rig.CopyNow(to, from, size);
    };
    auto made = NvmeParking::Make(options);
    SIPHON_CHECK(made.ok(), "there is room for a test on the disk");
    drive_ = *std::move(made);
    memory_[{.tier = Placement::kNvmeSwap}] = {drive_->bytes(), link};
    link_ = DriveLink{link, [this](CopyLane lane, absl::Span<const CopyPart> parts) {
                        return drive_->Move(lane, parts);
                      }};
  }

  std::map<ParkingPlace, ParkingMemory> memory_;
  std::unique_ptr<NvmeParking> drive_;
  std::optional<DriveLink> link_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_RIG_PARKING_H_
