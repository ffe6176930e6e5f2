#ifndef SIPHON_PLANNER_MAPPING_PARKING_FLOW_H_
#define SIPHON_PLANNER_MAPPING_PARKING_FLOW_H_

#include <cstdint>
#include <vector>

#include "planner/mapping/parking_demand.h"
#include "planner/mapping/swap_fabric.h"
#include "planner/mapping/timed_flow.h"
#include "planner/memory_plan.h"

namespace siphon {

// Bytes that find no room with any lender, then the time that the slowest owner's parked bytes take
// one way; compared in this order.
struct ParkingTime {
  Bytes unparked;
  Nanos time;
  friend constexpr auto operator<=>(const ParkingTime&, const ParkingTime&) = default;
};

// Who may lend to whom under a map, as a flow from owners to lenders.
//
// With an engine for each peer an owner's copies run side by side, each at its pair's rate, all
// together within the owner's cap. With one engine for all peers they go one after the other: an
// owner moves its bytes at the rate of its fastest lender, and uses a slower one only in a time in
// which it could move all of its bytes at that rate. That is exact where an owner's pairs are
// equally fast, as they are on a switched fabric; where they are not, the time is an upper bound,
// too long by the ratio of the rates at most if all bytes find room.
class ParkingFlow {
 public:
  struct Loan {
    int owner = 0;   // worker
    int lender = 0;  // device
    int arc = 0;
  };

  // Parked bytes are rounded up to whole granules, lenders' bytes down.
  // Requires: CheckParkingDemand, CheckMapping.
  ParkingFlow(const SwapFabric& fabric, const DeviceMapping& mapping, const ParkingDemand& demand,
              Bytes granule);

  TimedFlow& flow() { return flow_; }
  const std::vector<Loan>& loans() const { return loans_; }
  const std::vector<int>& owner_arcs() const { return owner_arcs_; }    // [worker]
  const std::vector<int>& lender_arcs() const { return lender_arcs_; }  // [device]
  int OwnerNode(int worker) const { return 2 + worker; }
  int LenderNode(int device) const { return 2 + workers_ + device; }
  int64_t lendable(int device) const { return lendable_[device]; }  // granules

 private:
  void AddOwner(const SwapFabric& fabric, const DeviceMapping& mapping, int worker, Bytes parked,
                Bytes granule);

  int workers_;
  TimedFlow flow_;
  std::vector<Loan> loans_;
  std::vector<int> owner_arcs_;
  std::vector<int> lender_arcs_;
  std::vector<int64_t> lendable_;
};

// The best that a map can do, in whole bytes.
// Requires: CheckParkingDemand, CheckMapping.
ParkingTime LeastParkingTime(const SwapFabric& fabric, const DeviceMapping& mapping,
                             const ParkingDemand& demand);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_PARKING_FLOW_H_
