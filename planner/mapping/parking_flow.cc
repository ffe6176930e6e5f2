#include "planner/mapping/parking_flow.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

// [device]: what its worker lends; without a worker, all of its memory.
std::vector<Bytes> LendableByDevice(const SwapFabric& fabric, const DeviceMapping& mapping,
                                    const ParkingDemand& demand) {
  std::vector<Bytes> lendable;
  for (const int64_t memory : fabric.memory) lendable.emplace_back(memory);
  for (size_t worker = 0; worker < mapping.device_of_worker.size(); ++worker) {
    lendable[mapping.device_of_worker[worker].value] = demand.workers[worker].lendable;
  }
  return lendable;
}

}  // namespace

ParkingFlow::ParkingFlow(const SwapFabric& fabric, const DeviceMapping& mapping,
                         const ParkingDemand& demand, Bytes granule)
    : workers_(static_cast<int>(demand.workers.size())),
      flow_(2 + workers_ + fabric.devices, granule) {
  for (const Bytes bytes : LendableByDevice(fabric, mapping, demand)) {
    lendable_.push_back(bytes.value / granule.value);
  }
  for (int worker = 0; worker < workers_; ++worker) {
    AddOwner(fabric, mapping, worker, demand.workers[worker].parked, granule);
  }
  for (int device = 0; device < fabric.devices; ++device) {
    lender_arcs_.push_back(
        flow_.AddArc(LenderNode(device), TimedFlow::kSink, lendable_[device], fabric.cap[device]));
  }
}

void ParkingFlow::AddOwner(const SwapFabric& fabric, const DeviceMapping& mapping, int worker,
                           Bytes parked, Bytes granule) {
  const int device = mapping.device_of_worker[worker].value;
  const bool one_engine = fabric.engines == CopyEngines::kOneForAllPeers;
  const int64_t granules = (parked.value + granule.value - 1) / granule.value;
  int64_t fastest = 0;
  for (int lender = 0; lender < fabric.devices; ++lender) {
    if (lendable_[lender] > 0) fastest = std::max(fastest, fabric.rate[device][lender]);
  }
  owner_arcs_.push_back(
      flow_.AddArc(TimedFlow::kSource, OwnerNode(worker), granules,
                   one_engine ? std::min(fabric.cap[device], fastest) : fabric.cap[device]));
  for (int lender = 0; granules > 0 && lender < fabric.devices; ++lender) {
    const int64_t rate = fabric.rate[device][lender];
    const int64_t limit = std::min(granules, lendable_[lender]);
    if (rate == 0 || limit == 0) continue;
    const int from = OwnerNode(worker);
    const int to = LenderNode(lender);
    const int arc = !one_engine ? flow_.AddArc(from, to, limit, rate)
                    : rate == fastest
                        ? flow_.AddArc(from, to, limit, SwapFabric::kUnlimited)
                        : flow_.AddGate(from, to, limit, TransferTime(granule * granules, rate));
    loans_.push_back({worker, lender, arc});
  }
}

ParkingTime LeastParkingTime(const SwapFabric& fabric, const DeviceMapping& mapping,
                             const ParkingDemand& demand) {
  Bytes parked;
  for (const ParkingNeed& worker : demand.workers) parked += worker.parked;
  ParkingFlow parking(fabric, mapping, demand, Bytes(1));
  const int64_t most = parking.flow().MostFlow();
  return {parked - Bytes(most), parking.flow().LeastTime(most, Nanos(0))};
}

}  // namespace siphon
