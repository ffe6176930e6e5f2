#include "planner/bounds/counting/combinatorial_bound.h"

#include <algorithm>
#include <cstddef>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/bounds/counting/away_limits.h"
#include "planner/bounds/counting/least_time.h"
#include "planner/bounds/counting/lender_bound.h"

namespace siphon {
namespace {

constexpr int64_t kThousandths = 1000;

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
        own_path_(windowed.own_path),
        recompute_(PartsOf(facts, windowed)) {}

  // Of activations at all windows together that must cross the uplink.
  Bytes ForUplink(Nanos time) const {
    return Left(time) - std::min(Left(time), BytesMoved(link_, time));
  }
  bool Enough(Nanos time) const {
    return memory_.fixed_excess <= StandingAway(time) &&
           ForUplink(time) <= BytesMoved(uplink_, time);
  }

 private:
  static std::vector<RecomputableParts> PartsOf(const BoundFacts& facts,
                                                const WindowedWorker& windowed) {
    std::vector<RecomputableParts> all;
    const WorkerMemory& memory = facts.memory[windowed.worker];
    for (const LayerKind& kind : memory.layers) {
      RecomputableParts& parts = all.emplace_back(RecomputableParts{kind.stash, kind.recompute});
      for (const MemoryWindow& window : memory.windows) {
        parts.count += facts.Count(windowed.worker, window, kind);
      }
    }
    return all;
  }

  // Of activations that must be swapped.
  Bytes Left(Nanos time) const {
    const Bytes standing = StandingAway(time);
    Bytes left;
    for (const MemoryWindow& window : memory_.windows) {
      left += std::max(Bytes(0), std::max(window.excess, window.excess_at_end) - standing);
    }
    return left - std::min(left, recompute_.Within(time - own_path_));
  }

  // Of parameters, gradients and optimizer state, at most.
  Bytes StandingAway(Nanos time) const {
    const Bytes in = BytesMoved(link_in_, time) + BytesMoved(uplink_in_, time);
    return StandingAwayAtMost(memory_, host_step_, in);
  }

  const WorkerMemory& memory_;
  const HostStep host_step_;
  const BytesPerSecond link_;  // out and back
  const BytesPerSecond link_in_;
  const BytesPerSecond uplink_;
  const BytesPerSecond uplink_in_;
  const Nanos own_path_;
  const RecomputeLimit recompute_;
};

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

// Where nothing is known of the others, as if they held nothing.
FullMoment FullestOf(const BoundFacts& facts, int worker) {
  for (const FullMoment& moment : facts.moments) {
    if (moment.worker == worker) return moment;
  }
  const std::vector<MemoryWindow>& windows = facts.memory[worker].windows;
  const auto fullest = std::max_element(windows.begin(), windows.end(),
                                        [](const MemoryWindow& a, const MemoryWindow& b) {
                                          return a.stash + a.queued < b.stash + b.queued;
                                        });
  return {.worker = worker, .window = static_cast<int>(fullest - windows.begin())};
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
                       return left <= BytesMoved(shared.uplinks, time);
                     })});
  }
  for (const WindowedWorker& windowed : facts.windowed) {
    if (std::optional<BoundPart> part = LenderBound(facts, FullestOf(facts, windowed.worker))) {
      parts.push_back(*std::move(part));
    }
  }
  return parts;
}

}  // namespace siphon
