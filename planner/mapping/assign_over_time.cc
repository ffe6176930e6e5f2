#include "planner/mapping/assign_over_time.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kMostRounds = 8;

// bytes * numerator / denominator, rounded up.
Bytes ScaledUp(Bytes bytes, Bytes numerator, Bytes denominator) {
  const absl::int128 product = absl::int128(bytes.value) * numerator.value;
  return Bytes(static_cast<int64_t>((product + denominator.value - 1) / denominator.value));
}

// bytes * times, `most` at most. What rounding makes too much here finds no room later.
Bytes AtMost(Bytes bytes, double times, Bytes most) {
  constexpr double kRounding = 1 + 1e-12;
  const double scaled = static_cast<double>(bytes.value) * times * kRounding;
  return scaled >= static_cast<double>(most.value) ? most : Bytes(static_cast<int64_t>(scaled));
}

absl::Status CheckCurves(const ParkingOverTime& curves) {
  const size_t moments = curves.parked.empty() ? 0 : curves.parked.front().size();
  const auto same = [moments](const std::vector<Bytes>& curve) { return curve.size() == moments; };
  if (curves.parked.size() == curves.lendable.size() && moments > 0 &&
      std::all_of(curves.parked.begin(), curves.parked.end(), same) &&
      std::all_of(curves.lendable.begin(), curves.lendable.end(), same)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "curves of ", curves.parked.size(), " owners and ", curves.lendable.size(),
      " lenders have to be of the same workers and moments, of which there is at least one"));
}

// Moments in ascending order of time, only those that can bind: where something is parked, and not
// as much or more with as little or less to lend at the moment kept before or behind.
class TimedLenders {
 public:
  TimedLenders(const SwapFabric& fabric, const DeviceMapping& mapping,
               const ParkingOverTime& curves)
      : fabric_(fabric), mapping_(mapping), curves_(curves), worker_of_(fabric.devices, -1) {
    for (size_t worker = 0; worker < curves.parked.size(); ++worker) {
      worker_of_[mapping.device_of_worker[worker].value] = static_cast<int>(worker);
      const std::vector<Bytes>& parked = curves.parked[worker];
      fullest_.push_back(*std::max_element(parked.begin(), parked.end()));
    }
    for (size_t moment = 0; moment < curves.parked.front().size(); ++moment) {
      const bool any = std::any_of(
          curves.parked.begin(), curves.parked.end(),
          [moment](const std::vector<Bytes>& parked) { return parked[moment] > Bytes(0); });
      if (!any) continue;
      while (!moments_.empty() && IsTighter(moment, moments_.back())) moments_.pop_back();
      if (moments_.empty() || !IsTighter(moments_.back(), moment)) moments_.push_back(moment);
    }
    for (size_t owner = 0; owner < fullest_.size(); ++owner) {
      std::vector<double>& parts = parts_.emplace_back();
      if (fullest_[owner] == Bytes(0)) continue;
      for (const size_t moment : moments_) {
        parts.push_back(static_cast<double>(curves.parked[owner][moment].value) /
                        static_cast<double>(fullest_[owner].value));
      }
    }
  }

  // [device]: free whenever anything is parked.
  std::vector<Bytes> AlwaysFree() const {
    std::vector<Bytes> free;
    for (int device = 0; device < Devices(); ++device) {
      Bytes least(fabric_.memory[device]);
      if (worker_of_[device] >= 0) {
        least = Bytes(std::numeric_limits<int64_t>::max());
        for (const size_t moment : moments_) least = std::min(least, FreeAt(device, moment));
        if (moments_.empty()) least = Bytes(0);
      }
      free.push_back(least);
    }
    return free;
  }

  // What an owner parks at its fullest, and each device lends.
  ParkingAssignment Assign(const std::vector<Bytes>& lendable, Bytes granule) const {
    ParkingDemand demand;
    for (const Bytes parked : fullest_) demand.workers.push_back({.parked = parked});
    SwapFabric limited = fabric_;
    for (int device = 0; device < Devices(); ++device) {
      limited.memory[device] = lendable[device].value;
      if (worker_of_[device] >= 0) demand.workers[worker_of_[device]].lendable = lendable[device];
    }
    return AssignParkingOn(limited, mapping_, demand, granule);
  }

  // [device][worker]: bytes of each owner at its fullest.
  using Shares = std::vector<std::vector<Bytes>>;
  Shares SharesOf(const ParkingAssignment& assignment) const {
    Shares shares(Devices(), std::vector<Bytes>(fullest_.size()));
    for (size_t owner = 0; owner < fullest_.size(); ++owner) {
      for (const Stripe& stripe : assignment.owners[owner].stripes) {
        shares[stripe.lender.value][owner] = stripe.bytes;
      }
    }
    return shares;
  }

  // Of a lender that serves nobody: all that it could serve, in proportion to what they park and
  // how fast.
  void ServeAllIfNone(int device, std::vector<Bytes>& shares) const {
    for (const Bytes share : shares) {
      if (share > Bytes(0)) return;
    }
    int64_t fastest = 1;
    for (size_t owner = 0; owner < shares.size(); ++owner) {
      const int64_t rate = RateOf(owner, device);
      if (rate != SwapFabric::kUnlimited) fastest = std::max(fastest, rate);
    }
    for (size_t owner = 0; owner < shares.size(); ++owner) {
      const int64_t rate = std::min(fastest, RateOf(owner, device));
      shares[owner] = ScaledUp(fullest_[owner], Bytes(rate), Bytes(fastest));
    }
  }

  // How many times these shares fit at the device's tightest moment; none where nobody parks
  // anything with it.
  std::optional<double> TimesThatFit(int device, const std::vector<Bytes>& shares) const {
    std::vector<double> needed(moments_.size());
    for (size_t owner = 0; owner < shares.size(); ++owner) {
      if (shares[owner] == Bytes(0)) continue;
      const auto share = static_cast<double>(shares[owner].value);
      for (size_t place = 0; place < needed.size(); ++place) {
        needed[place] += share * parts_[owner][place];
      }
    }
    std::optional<double> least;
    for (size_t place = 0; place < needed.size(); ++place) {
      if (needed[place] == 0) continue;
      const double times =
          static_cast<double>(FreeAt(device, moments_[place]).value) / needed[place];
      least = std::min(least.value_or(times), times);
    }
    return least;
  }

  bool HasRoomFor(int device, const std::vector<Bytes>& shares) const {
    return std::all_of(moments_.begin(), moments_.end(), [&](size_t moment) {
      Bytes needed;
      for (size_t owner = 0; owner < shares.size(); ++owner) {
        if (shares[owner] == Bytes(0)) continue;
        needed += ScaledUp(shares[owner], curves_.parked[owner][moment], fullest_[owner]);
      }
      return needed <= FreeAt(device, moment);
    });
  }

  int Devices() const { return static_cast<int>(worker_of_.size()); }
  Bytes Fullest() const {
    Bytes sum;
    for (const Bytes parked : fullest_) sum += parked;
    return sum;
  }

 private:
  // Everyone parks as much or more at `a`, and has as little or less to lend.
  bool IsTighter(size_t a, size_t b) const {
    for (size_t worker = 0; worker < curves_.parked.size(); ++worker) {
      if (curves_.parked[worker][a] < curves_.parked[worker][b]) return false;
      if (curves_.lendable[worker][a] > curves_.lendable[worker][b]) return false;
    }
    return true;
  }

  Bytes FreeAt(int device, size_t moment) const {
    const int worker = worker_of_[device];
    return worker < 0 ? Bytes(fabric_.memory[device]) : curves_.lendable[worker][moment];
  }

  int64_t RateOf(size_t owner, int lender) const {
    return fabric_.rate[mapping_.device_of_worker[owner].value][lender];
  }

  const SwapFabric& fabric_;
  const DeviceMapping& mapping_;
  const ParkingOverTime& curves_;
  std::vector<int> worker_of_;  // [device]; -1: none
  std::vector<Bytes> fullest_;  // [worker]
  std::vector<size_t> moments_;
  // [worker][of `moments_`]: what is parked, as a part of the fullest; none where nothing ever is.
  std::vector<std::vector<double>> parts_;
};

bool IsBetter(const ParkingAssignment& a, const ParkingAssignment& b) {
  return std::tie(a.unparked, a.time) < std::tie(b.unparked, b.time);
}

}  // namespace

absl::StatusOr<ParkingAssignment> AssignParkingOverTime(const SwapFabric& fabric,
                                                        const DeviceMapping& mapping,
                                                        const ParkingOverTime& curves,
                                                        Bytes granule) {
  SIPHON_RETURN_IF_ERROR(CheckCurves(curves));
  const TimedLenders lenders(fabric, mapping, curves);
  const std::vector<Bytes> always = lenders.AlwaysFree();
  ParkingAssignment best = lenders.Assign(always, granule);
  ParkingAssignment latest = best;
  std::vector<Bytes> lendable = always;
  for (int round = 0; round < kMostRounds; ++round) {
    TimedLenders::Shares shares = lenders.SharesOf(latest);
    std::vector<Bytes> next = always;
    for (int device = 0; device < lenders.Devices(); ++device) {
      lenders.ServeAllIfNone(device, shares[device]);
      Bytes served;
      for (const Bytes share : shares[device]) served += share;
      const std::optional<double> times = lenders.TimesThatFit(device, shares[device]);
      if (!times) continue;
      next[device] = std::max(next[device], AtMost(served, *times, lenders.Fullest()));
    }
    if (next == lendable) break;
    lendable = std::move(next);
    latest = lenders.Assign(lendable, granule);
    const TimedLenders::Shares taken = lenders.SharesOf(latest);
    bool keeps = true;
    for (int device = 0; device < lenders.Devices(); ++device) {
      keeps = keeps && lenders.HasRoomFor(device, taken[device]);
    }
    if (keeps && IsBetter(latest, best)) best = latest;
  }
  return best;
}

}  // namespace siphon
