#ifndef SIPHON_LAUNCH_RUN_PARKING_LENDING_H_
#define SIPHON_LAUNCH_RUN_PARKING_LENDING_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/parking/device_lending.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/seat_memory.h"
#include "launch/run/seat/worker_seat.h"
#include "planner/ids.h"
#include "planner/units.h"
#include "swap/device/numa_place.h"
#include "swap/memory_ledger.h"

namespace siphon {

// The device that a worker is on, by the job's plan.
DeviceId DeviceOfWorker(const PreparedJob& prepared, WorkerId worker);

// What one worker lends to others, on its books: of the memory that all workers share, what the
// plan in force parks with it; of its device an arena (DeviceLending), which has room for the
// plan's second choices from the begin. LibTorch may have of a device what the books leave.
//
// Thread-safety: one thread, the worker's. The arguments outlive this.
class Lending {
 public:
  Lending(const PreparedJob& prepared, const WorkerSeat& seat, SeatMemory& memory,
          const NumaPlace& numa, Coordinator& coordinator);

  // Collective: takes what `now`, a plan of that region, parks here, and opens what others lend. A
  // refusal is no error, but refusal(). Requires: nothing is lent. Errors: on all workers where it
  // is about devices: ResourceExhausted where LibTorch holds more than it may.
  absl::Status Take(const RoomRegion& region, const std::vector<WorkerParking>& now);
  // Why this worker does not lend; OK where it does, or nobody asks.
  const absl::Status& refusal() const { return refusal_; }
  // Whether that is since the device has less than the books have.
  bool device_refuses() const { return device_refuses_; }
  // Asks again whether it lends (WorkerSeat::at_phase), where it does. Errors: what is no refusal.
  absl::Status AskAgain();

  // For second choices that go here by `now`. Errors: ResourceExhausted.
  absl::Status TakeMore(const std::vector<WorkerParking>& now);
  // Of what is shared, what `now` parks here and `before` did not is touched by this worker first:
  // on its node of the machine, and there, rather than found missing when somebody parks.
  void Touch(const std::vector<WorkerParking>& before, const std::vector<WorkerParking>& now);
  // Off the books goes what nobody parks here any more.
  void GiveUnused(const std::vector<WorkerParking>& now);
  // Collective: what these workers lent of their devices, who lend no more, goes back to them,
  // where nobody parks by `now`. Once for each of them. Errors: as those of the coordinator.
  absl::Status LeaveRefusing(const std::set<WorkerId>& lenders,
                             const std::vector<WorkerParking>& now);
  // Collective: all of it. Nobody parks anything then. Errors: as those of the coordinator.
  absl::Status GiveBack();

  // Lenders that this worker cannot use, and why (DeviceLending::out_of_reach).
  std::map<DeviceId, std::string> OutOfReach() const;
  // Whether a lender of this worker's does not lend what it would park there.
  bool Lacks(const WorkerParking& parking) const;
  // Null: the memory of all lenders is shared.
  const DeviceLending* on_device() const { return on_device_.get(); }

 private:
  Bytes BytesHere(const std::vector<WorkerParking>& now) const;
  absl::Status TakeBytes(const std::vector<WorkerParking>& now);

  const WorkerSeat& seat_;
  SeatMemory& memory_;
  MemoryLedger& books_;  // its
  const NumaPlace& numa_;
  Coordinator& coordinator_;
  const DeviceId device_;
  std::unique_ptr<DeviceLending> on_device_;
  RoomRegion region_;
  Bytes lent_;  // on the books
  absl::Status refusal_;
  bool device_refuses_ = false;
  std::vector<DeviceId> device_of_;  // [worker]
  std::set<DeviceId> left_;  // devices that lend no more, and nothing is open of; on all alike
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_LENDING_H_
