#include "planner/mapping/assign_parking.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/mapping/parking_flow.h"
#include "planner/mapping/timed_flow.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Stands for a pair without a limit when stripes are made proportional to rates: faster than any.
constexpr int64_t kFastestPair = 1'000'000'000'000;

// Granules of a loan; owner is a worker, lender a device.
struct LentGranules {
  int owner = 0;
  int lender = 0;
  int64_t granules = 0;
};

// Third rule of AssignParking. What each owner parks, which pairs it uses and what lenders take in
// is settled; the time of its longest stripe is not. The owners that the minimum cut just below the
// least common time holds up cannot be faster, so they are fixed and the others go on.
class EvenStripes {
 public:
  EvenStripes(const SwapFabric& fabric, const DeviceMapping& mapping, ParkingFlow& parking,
              Nanos time, int workers, Bytes granule)
      : parking_(parking), flow_(2 + workers + fabric.devices, granule), fixed_(workers) {
    for (int worker = 0; worker < workers; ++worker) {
      const int64_t parked = parking.flow().Flow(parking.owner_arcs()[worker]);
      flow_.AddArc(TimedFlow::kSource, parking.OwnerNode(worker), parked, SwapFabric::kUnlimited);
      all_ += parked;
    }
    for (const ParkingFlow::Loan& loan : parking.loans()) {
      const int device = mapping.device_of_worker[loan.owner].value;
      if (parking.flow().Capacity(loan.arc, time) == 0) continue;
      const int arc = flow_.AddArc(parking.OwnerNode(loan.owner), parking.LenderNode(loan.lender),
                                   parking.lendable(loan.lender),
                                   std::min(kFastestPair, fabric.rate[device][loan.lender]));
      loans_.push_back({loan.owner, loan.lender, arc});
    }
    for (int device = 0; device < fabric.devices; ++device) {
      flow_.AddArc(parking.LenderNode(device), TimedFlow::kSink,
                   parking.flow().Capacity(parking.lender_arcs()[device], time),
                   SwapFabric::kUnlimited);
    }
  }

  std::vector<LentGranules> Find() {
    Nanos time = flow_.LeastTime(all_, Nanos(0));
    while (time > Nanos(0)) {
      FixSlowest(time);
      time = flow_.LeastTime(all_, Nanos(0));
    }
    std::vector<LentGranules> lent;
    for (const ParkingFlow::Loan& loan : loans_) {
      const int64_t granules = flow_.Flow(loan.arc);
      if (granules > 0) lent.push_back({loan.owner, loan.lender, granules});
    }
    return lent;
  }

 private:
  void FixSlowest(Nanos time) {
    const std::vector<bool> source_side = flow_.SourceSideAt(time - Nanos(1));
    std::vector<bool> slowest(fixed_.size());
    for (const ParkingFlow::Loan& loan : loans_) {
      const bool crosses = source_side[parking_.OwnerNode(loan.owner)] &&
                           !source_side[parking_.LenderNode(loan.lender)];
      if (crosses && flow_.Capacity(loan.arc, time) > flow_.Capacity(loan.arc, time - Nanos(1))) {
        slowest[loan.owner] = true;
      }
    }
    bool any = false;
    for (const ParkingFlow::Loan& loan : loans_) {
      if (!slowest[loan.owner] || fixed_[loan.owner]) continue;
      flow_.FixArc(loan.arc, time);
      any = true;
    }
    SIPHON_CHECK(any, "a cut that more time opens has an owner before it");
    for (size_t owner = 0; owner < fixed_.size(); ++owner) {
      fixed_[owner] = fixed_[owner] || slowest[owner];
    }
  }

  ParkingFlow& parking_;
  TimedFlow flow_;
  int64_t all_ = 0;
  std::vector<ParkingFlow::Loan> loans_;
  std::vector<bool> fixed_;  // [worker]
};

// Adds an owner's stripes and what is left of its bytes.
void AddStripes(const std::vector<LentGranules>& lent, const ParkingDemand& demand, Bytes granule,
                ParkingAssignment& assignment) {
  for (const LentGranules& loan : lent) {
    assignment.owners[loan.owner].stripes.push_back(
        {DeviceId(loan.lender), granule * loan.granules});
  }
  for (size_t worker = 0; worker < demand.workers.size(); ++worker) {
    OwnerParking& owner = assignment.owners[worker];
    Bytes left = demand.workers[worker].parked;
    for (const Stripe& stripe : owner.stripes) left -= stripe.bytes;
    if (left < Bytes(0)) owner.stripes.back().bytes += left;
    owner.unparked = std::max(left, Bytes(0));
    assignment.unparked += owner.unparked;
  }
}

// [device]
std::vector<Bytes> TakenIn(const ParkingAssignment& assignment, int devices) {
  std::vector<Bytes> taken(devices);
  for (const OwnerParking& owner : assignment.owners) {
    for (const Stripe& stripe : owner.stripes) taken[stripe.lender.value] += stripe.bytes;
  }
  return taken;
}

Nanos TimeOf(const OwnerParking& owner, const SwapFabric& fabric, int device,
             const std::vector<Bytes>& taken) {
  Nanos longest;
  Nanos caps;
  Bytes parked;
  std::map<int64_t, Bytes> bytes_by_rate;
  for (const Stripe& stripe : owner.stripes) {
    const int lender = stripe.lender.value;
    const int64_t rate = fabric.rate[device][lender];
    longest = std::max(longest, TransferTime(stripe.bytes, rate));
    caps = std::max(caps, TransferTime(taken[lender], fabric.cap[lender]));
    parked += stripe.bytes;
    bytes_by_rate[rate] += stripe.bytes;
  }
  caps = std::max(caps, TransferTime(parked, fabric.cap[device]));
  if (fabric.engines == CopyEngines::kOnePerPeer) return std::max(caps, longest);
  Nanos sum;
  for (const auto& [rate, bytes] : bytes_by_rate) {
    sum = std::min(sum + TransferTime(bytes, rate), TimedFlow::kLongest);
  }
  return std::max(caps, sum);
}

}  // namespace

absl::StatusOr<ParkingAssignment> AssignParking(const Topology& topology,
                                                const DeviceMapping& mapping,
                                                const ParkingDemand& demand, Bytes granule) {
  const auto workers = static_cast<int>(demand.workers.size());
  SIPHON_RETURN_IF_ERROR(CheckParkingDemand(demand, topology));
  SIPHON_RETURN_IF_ERROR(CheckMapping(mapping, workers, topology));
  if (granule <= Bytes(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a granule has ", granule.value, " bytes; 1 is the least"));
  }
  return AssignParkingOn(MakeSwapFabric(topology), mapping, demand, granule);
}

ParkingAssignment AssignParkingOn(const SwapFabric& fabric, const DeviceMapping& mapping,
                                  const ParkingDemand& demand, Bytes granule) {
  const auto workers = static_cast<int>(demand.workers.size());
  ParkingFlow parking(fabric, mapping, demand, granule);
  const Nanos time = parking.flow().LeastTime(parking.flow().MostFlow(), Nanos(0));
  ParkingAssignment assignment;
  assignment.owners.resize(demand.workers.size());
  AddStripes(EvenStripes(fabric, mapping, parking, time, workers, granule).Find(), demand, granule,
             assignment);
  const std::vector<Bytes> taken = TakenIn(assignment, fabric.devices);
  for (int worker = 0; worker < workers; ++worker) {
    OwnerParking& owner = assignment.owners[worker];
    owner.time = TimeOf(owner, fabric, mapping.device_of_worker[worker].value, taken);
    assignment.time = std::max(assignment.time, owner.time);
  }
  return assignment;
}

}  // namespace siphon
