#ifndef SIPHON_LAUNCH_RUN_PARKING_PARKING_ROOM_H_
#define SIPHON_LAUNCH_RUN_PARKING_PARKING_ROOM_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/parking/device_lending.h"
#include "launch/run/parking/host_memory.h"
#include "launch/run/seat/link_watch.h"
#include "planner/ids.h"
#include "planner/units.h"
#include "swap/device/device_backend.h"
#include "swap/device/nvme_parking.h"
#include "swap/memory_ledger.h"
#include "swap/swap_engine.h"

namespace siphon {

// The memory that all workers of a job share: all lenders' (ParkingRegion); behind it, with a
// throttled topology, the times until which its ways are taken (SharedWays) and when messages were
// started (MessagePosts), zero at the begin; and the books of the host's memory (MemoryLedger)
// where a plan may come to need it.
struct SharedRegion {
  Bytes lent;  // of lenders together, from the begin on
  Bytes ways;  // where they begin
  Bytes ways_bytes;
  Bytes posts;  // where they begin
  Bytes books;  // where they begin
  Bytes books_bytes;
  Bytes bytes;  // in all; 0: nothing is shared
};
SharedRegion LayOutShared(const PreparedJob& prepared);
Bytes ParkingRegionBytes(const PreparedJob& prepared);
// What others park on the worker's device, for the whole run.
Bytes LentByWorker(const PreparedJob& prepared, WorkerId worker);

// What all workers of a job share for parking by one plan. The memory outlives its users.
struct RoomRegion {
  // [worker], by that plan; with what its second choices may park with lenders (SecondLending).
  std::vector<WorkerParking> parking;
  absl::Span<std::byte> lent;       // LayOutRegion(parking), or more
  absl::Span<std::byte> ways;       // SharedWays; empty: links share nothing
  MemoryLedger* host = nullptr;     // what is taken of the host is on it; null: on none
  const NumaPlace* numa = nullptr;  // of the worker's memory; null: anywhere
  // Of a CUDA worker: its device, and what others lend it there, instead of `lent`. Null: the CPU.
  const WorkerDevice* device = nullptr;
  const DeviceLending* lending = nullptr;
};
// Of the job's plan. `shared` has ParkingRegionBytes; where nobody lends it may be empty.
RoomRegion RegionOf(const PreparedJob& prepared, absl::Span<std::byte> shared);
// The part for the host's books in that memory; empty where there is none.
absl::Span<std::byte> HostBooksIn(const PreparedJob& prepared, absl::Span<std::byte> shared);

// What workers may have of the host, all together: its memory by the plan's topology, of which
// memory.host_capacity is a part; 0: no limit.
Bytes HostCapacityOf(const PreparedJob& prepared);

// The directory whose drive takes what workers park there.
std::string DriveDirectory(const JobConfig& job);
// OK where that drive has room for what all workers park there; a warning where it has none beside
// that for second choices of optimizer steps on the host. Errors: as CheckRoomOnDrive of
// swap/device/nvme_file.
absl::Status CheckDriveRoom(const PreparedJob& prepared);

// A worker's room with the host as a file on its drive, which takes nothing of the host's books.
// `numa`: as RoomRegion's. Errors: HostMapping::MakeOnDrive's, as RefusedByDrive.
absl::StatusOr<HostMapping> MakeHostRoomOnDrive(const PreparedJob& prepared, WorkerId me,
                                                Bytes bytes, const NumaPlace* numa);

// An error of a drive, whatever it is, as one of ParkingRoom::Make.
absl::Status RefusedByDrive(absl::Status status);
// Whether an error of ParkingRoom::Make is for second choices: memory that the host does not give,
// and a drive that has no room, or on which no file can be made.
bool IsRefusal(const absl::Status& status);
// Which place has not given its room, of such an error: kNvmeSwap or kHostSwap.
Placement RefusingTier(const absl::Status& status);

// Where one worker parks its tensors, and what moves them there and back.
//
// Thread-safety: one thread, the worker's; the engine's copies run on others, which end with this.
class ParkingRoom {
 public:
  // `parking` is the worker's in the region's plan, or what is left of that. `at_chunk`: see
  // WorkerSeat. Errors: as HostMapping::Make and NvmeParking::Make.
  static absl::StatusOr<std::unique_ptr<ParkingRoom>> Make(
      const PreparedJob& prepared, WorkerId me, const WorkerParking& parking,
      const RoomRegion& region, const std::function<absl::Status()>& at_chunk = nullptr);
  SwapEngine& engine() { return engine_; }
  // Where it parks on a drive; else null.
  const NvmeParking* drive() const { return drive_.get(); }

  // Between steps: from now on the worker parks so (SwapEngine::Rehouse). Errors: as that, and as
  // HostMapping::Grow.
  absl::Status Rehouse(const WorkerParking& parking);

  // [link]: since the last call.
  std::vector<LinkState> TakeLinkUse();
  // For tests: the link to that place, if there is one, is so many times slower from now on.
  void SlowDown(const ParkingPlace& place, double factor);

 private:
  ParkingRoom(HostMapping host, std::unique_ptr<HostMapping> buffers,
              std::unique_ptr<NvmeParking> drive, std::vector<LinkState> links,
              std::unique_ptr<DeviceBackend> backend, const WorkerParking& parking,
              std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check);

  HostMapping host_;
  const std::unique_ptr<HostMapping> buffers_;          // the drive's
  std::unique_ptr<NvmeParking> drive_;                  // null: nothing goes there
  const std::vector<LinkState> links_;                  // [link], not used yet
  const std::map<ParkingPlace, ParkingMemory> memory_;  // of lenders and the drive
  const std::unique_ptr<DeviceBackend> backend_;
  SwapEngine engine_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_PARKING_ROOM_H_
