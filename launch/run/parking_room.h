#ifndef SIPHON_LAUNCH_RUN_PARKING_ROOM_H_
#define SIPHON_LAUNCH_RUN_PARKING_ROOM_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/run/prepare_job.h"
#include "planner/ids.h"
#include "planner/units.h"
#include "swap/device/cpu_backend.h"
#include "swap/device/nvme_parking.h"
#include "swap/swap_engine.h"

namespace siphon {

// Memory of the host that a worker has to itself, zero-filled and there from the begin.
class HostMapping {
 public:
  // Errors: ResourceExhausted when the machine does not give it.
  static absl::StatusOr<HostMapping> Make(Bytes bytes);
  HostMapping() = default;
  HostMapping(HostMapping&& other) noexcept;
  HostMapping& operator=(HostMapping&& other) noexcept;
  ~HostMapping();
  absl::Span<std::byte> bytes() const { return bytes_; }

 private:
  explicit HostMapping(absl::Span<std::byte> bytes) : bytes_(bytes) {}
  absl::Span<std::byte> bytes_;  // empty: nothing is mapped
};

// Bytes of all lenders' memory together (ParkingRegion); 0 where nobody lends.
Bytes ParkingRegionBytes(const PreparedJob& prepared);
// What others park on the worker's device, for the whole run.
Bytes LentByWorker(const PreparedJob& prepared, WorkerId worker);

// The directory whose drive takes what workers park there.
std::string DriveDirectory(const JobConfig& job);
// OK where that drive has room for what all workers park there. Errors: as CheckRoomOnDrive of
// swap/device/nvme_file.
absl::Status CheckDriveRoom(const PreparedJob& prepared);

// Where one worker parks its tensors, and what moves them there and back.
//
// Thread-safety: one thread, the worker's; the engine's copies run on others, which end with this.
class ParkingRoom {
 public:
  // `lent` is the ParkingRegion of the job, which outlives this. Requires: it is as large as
  // ParkingRegionBytes says; the worker parks something. Errors: as HostMapping::Make and
  // NvmeParking::Make.
  static absl::StatusOr<std::unique_ptr<ParkingRoom>> Make(const PreparedJob& prepared, WorkerId me,
                                                           absl::Span<std::byte> lent);
  SwapEngine& engine() { return engine_; }
  // Where it parks on a drive; else null.
  const NvmeParking* drive() const { return drive_.get(); }

 private:
  ParkingRoom(HostMapping host, std::unique_ptr<NvmeParking> drive, CpuBackendOptions links,
              WorkerParking parking, std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check);

  HostMapping host_;
  std::unique_ptr<NvmeParking> drive_;  // null: nothing goes there
  CpuBackend backend_;
  SwapEngine engine_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_ROOM_H_
