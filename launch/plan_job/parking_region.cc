#include "launch/plan_job/parking_region.h"

#include <cstddef>
#include <set>

#include "planner/round_up.h"

namespace siphon {
namespace {

constexpr Bytes kPage{4096};

std::set<DeviceId> LendersOf(const std::vector<WorkerParking>& parking) {
  std::set<DeviceId> lenders;
  for (const WorkerParking& owner : parking) {
    for (const auto& [place, bytes] : owner.bytes) {
      if (place.tier == Placement::kPeerSwap) lenders.insert(place.lender);
    }
  }
  return lenders;
}

}  // namespace

ParkingRegion LayOutRegion(const std::vector<WorkerParking>& parking) {
  ParkingRegion region;
  for (const DeviceId lender : LendersOf(parking)) {
    region.bytes = RoundUp(region.bytes, kPage);
    for (size_t owner = 0; owner < parking.size(); ++owner) {
      const auto found = parking[owner].bytes.find({Placement::kPeerSwap, lender});
      if (found == parking[owner].bytes.end() || found->second == Bytes(0)) continue;
      region.bytes = RoundUp(region.bytes, kCacheLine);
      region.parts.push_back(
          {lender, WorkerId(static_cast<int>(owner)), region.bytes, found->second});
      region.bytes += found->second;
    }
  }
  return region;
}

}  // namespace siphon
