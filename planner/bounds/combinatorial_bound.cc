#include "planner/bounds/combinatorial_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Longer than any step: the simulator refuses what could come near.
constexpr Nanos kForever{int64_t{1} << 60};
constexpr int64_t kThousandths = 1000;

int64_t RoundedUp(absl::int128 numerator, absl::int128 denominator) {
  return static_cast<int64_t>((numerator + denominator - 1) / denominator);
}

// The least time at which `enough` holds. Requires: it holds at all later times, too.
std::optional<Nanos> LeastTime(const std::function<bool(Nanos)>& enough) {
  if (!enough(kForever)) return std::nullopt;
  int64_t too_short = -1;
  int64_t long_enough = kForever.value;
  while (long_enough - too_short > 1) {
    const int64_t middle = too_short + (long_enough - too_short) / 2;
    (enough(Nanos(middle)) ? long_enough : too_short) = middle;
  }
  return Nanos(long_enough);
}

// What one worker can do about its excess within a time.
class WorkerBudget {
 public:
  WorkerBudget(const BoundFacts& facts, const WindowedWorker& windowed)
      : memory_(facts.memory[windowed.worker]),
        host_step_(facts.host_steps[windowed.worker]),
        link_(std::min(facts.limits.link_out[windowed.worker],
                       facts.limits.link_in[windowed.worker])),
        link_in_(facts.limits.link_in[windowed.worker]),
        uplink_(std::min(FastestOut(facts.limits.uplink[windowed.worker]),
                         FastestIn(facts.limits.uplink[windowed.worker]))),
        uplink_in_(FastestIn(facts.limits.uplink[windowed.worker])),
        own_path_(windowed.own_path) {
    for (const LayerKind& kind : memory_.layers) {
      Recomputable layer{.bytes = kind.stash, .time = kind.recompute};
      for (const MemoryWindow& window : memory_.windows) {
        layer.count += facts.Count(windowed.worker, window, kind);
      }
      layers_.push_back(layer);
    }
    std::sort(layers_.begin(), layers_.end(), [](const Recomputable& a, const Recomputable& b) {
      return absl::int128(a.bytes.value) * b.time.value >
             absl::int128(b.bytes.value) * a.time.value;
    });
  }

  // Of activations at all windows together that must cross the uplink.
  Bytes ForUplink(Nanos time) const {
    return Left(time) - std::min(Left(time), BytesMoved(link_, time));
  }
  bool Enough(Nanos time) const {
    return memory_.fixed_excess <= StandingAway(time) &&
           ForUplink(time) <= BytesMoved(uplink_, time);
  }

 private:
  struct Recomputable {
    Bytes bytes;
    Nanos time;
    int64_t count = 0;
  };

  // Of activations that must be swapped.
  Bytes Left(Nanos time) const {
    const Bytes standing = StandingAway(time);
    Bytes left;
    for (const MemoryWindow& window : memory_.windows) {
      left += std::max(Bytes(0), std::max(window.excess, window.excess_at_end) - standing);
    }
    return left - std::min(left, ComputedAgain(time));
  }

  Bytes ComputedAgain(Nanos time) const {
    if (time < own_path_) return Bytes(0);
    absl::int128 left = time.value - own_path_.value;
    absl::int128 bytes = 0;
    for (const Recomputable& layer : layers_) {
      const absl::int128 all = absl::int128(layer.time.value) * layer.count;
      if (all <= left) {
        left -= all;
        bytes += absl::int128(layer.bytes.value) * layer.count;
      } else {
        bytes += RoundedUp(left * layer.bytes.value, layer.time.value);
        break;
      }
    }
    return Bytes(static_cast<int64_t>(bytes));
  }

  // Of parameters, gradients and optimizer state, at most.
  Bytes StandingAway(Nanos time) const {
    const Bytes all = memory_.parameters + memory_.gradients + memory_.optimizer_state;
    const absl::int128 in =
        absl::int128(BytesMoved(link_in_, time).value) + BytesMoved(uplink_in_, time).value;
    if (in >= all.value) return all;
    if (!host_step_.open) return Bytes(static_cast<int64_t>(in));
    // A byte of parameters that comes in may stand for itself and for the state that the host has.
    if (host_step_.parameters == 0) return all;
    const double away = std::ceil(static_cast<double>(in) * (1 + 1 / host_step_.parameters));
    return Bytes(static_cast<int64_t>(std::min(away, static_cast<double>(all.value))));
  }

  const WorkerMemory& memory_;
  const HostStep host_step_;
  const BytesPerSecond link_;  // out and back
  const BytesPerSecond link_in_;
  const BytesPerSecond uplink_;
  const BytesPerSecond uplink_in_;
  const Nanos own_path_;
  std::vector<Recomputable> layers_;  // most bytes a nanosecond first
};

Bytes MovedBy(const std::vector<UplinkRates>& uplinks, Nanos time) {
  Bytes moved;
  for (const UplinkRates& uplink : uplinks) {
    moved = std::min(kUnlimitedBytes,
                     moved + BytesMoved(std::min(FastestOut(uplink), FastestIn(uplink)), time));
  }
  return moved;
}

// Workers of all replicas that have windows, by their budget.
std::vector<const WorkerBudget*> BudgetsOf(const BoundFacts& facts, const SharedUplinks& shared,
                                           const std::vector<WorkerBudget>& budgets) {
  std::vector<const WorkerBudget*> sharing;
  const auto workers = static_cast<int>(facts.memory.size());
  for (const int worker : shared.workers) {
    for (size_t index = 0; index < budgets.size(); ++index) {
      if (facts.windowed[index].worker == worker % workers) sharing.push_back(&budgets[index]);
    }
  }
  return sharing;
}

}  // namespace

std::vector<BoundPart> CombinatorialBounds(const BoundFacts& facts) {
  std::vector<BoundPart> parts{{"the schedule's longest path", facts.paths.step_time()}};
  if (facts.most_together > 0) {
    parts.push_back({"the cores that all workers share",
                     Nanos(static_cast<int64_t>(absl::int128(facts.work.value) * kThousandths /
                                                facts.most_together))});
  }
  std::vector<WorkerBudget> budgets;
  budgets.reserve(facts.windowed.size());
  for (const WindowedWorker& windowed : facts.windowed) {
    const WorkerBudget& budget = budgets.emplace_back(facts, windowed);
    parts.push_back({absl::StrCat("memory of worker ", windowed.worker),
                     LeastTime([&](Nanos time) { return budget.Enough(time); })});
  }
  for (const SharedUplinks& shared : facts.limits.shared) {
    const std::vector<const WorkerBudget*> sharing = BudgetsOf(facts, shared, budgets);
    if (sharing.size() < 2) continue;
    parts.push_back({shared.name, LeastTime([&](Nanos time) {
                       Bytes left;
                       for (const WorkerBudget* budget : sharing) left += budget->ForUplink(time);
                       return left <= MovedBy(shared.uplinks, time);
                     })});
  }
  return parts;
}

}  // namespace siphon
