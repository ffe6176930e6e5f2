#include "planner/bounds/counting/lender_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/bounds/counting/away_limits.h"
#include "planner/bounds/counting/least_time.h"

namespace siphon {
namespace {

// What one worker has live at the moment, and can do about it.
struct HolderThen {
  int worker = 0;
  Bytes stash;   // of activations that may be away
  Bytes queued;  // that may not
  // From the begin of the step, of its own actions and what must follow: what is computed again
  // comes on top.
  Nanos own_path;
  RecomputeLimit recompute{{}};
};

RecomputeLimit LimitOf(const WorkerMemory& memory, const std::vector<int>& live) {
  std::vector<RecomputableParts> parts;
  for (const LayerKind& kind : memory.layers) {
    const int64_t microbatches = live[PlaceOf(memory, kind.stage)];
    parts.push_back({kind.stash, kind.recompute, microbatches * kind.layers});
  }
  return RecomputeLimit(std::move(parts));
}

std::vector<HolderThen> HoldersOf(const BoundFacts& facts, const FullMoment& moment) {
  std::vector<HolderThen> holders;
  const WorkerMemory& full = facts.memory[moment.worker];
  const MemoryWindow& window = full.windows[moment.window];
  const auto windowed =
      std::find_if(facts.windowed.begin(), facts.windowed.end(),
                   [&](const WindowedWorker& one) { return one.worker == moment.worker; });
  holders.push_back({moment.worker, window.stash, window.queued, windowed->own_path,
                     LimitOf(full, window.waiting)});
  const Nanos head = facts.paths.Head({moment.worker, window.place});
  for (const LiveThen& other : moment.others) {
    holders.push_back({other.worker, other.stash, other.queued, head + other.rest,
                       LimitOf(facts.memory[other.worker], other.live)});
  }
  return holders;
}

// Of activations of all holders with the host, at most.
Bytes WithHost(const BoundFacts& facts, const std::vector<HolderThen>& holders, Nanos time) {
  std::vector<Bytes> own;
  Bytes all;
  for (const HolderThen& holder : holders) {
    own.push_back(std::min(holder.stash, BytesMoved({facts.limits.uplink[holder.worker]}, time)));
    all += own.back();
  }
  Bytes least = all;
  for (const SharedUplinks& shared : facts.limits.shared) {
    Bytes sharing;
    for (size_t index = 0; index < holders.size(); ++index) {
      if (Shares(shared, holders[index].worker)) sharing += own[index];
    }
    const Bytes carried = std::min(sharing, BytesMoved(shared.uplinks, time));
    least = std::min(least, all - sharing + carried);
  }
  return least;
}

}  // namespace

std::optional<BoundPart> LenderBound(const BoundFacts& facts, const FullMoment& moment) {
  if (facts.replicas > 1 || facts.limits.idle_memory >= kUnlimitedBytes) return std::nullopt;
  const std::vector<HolderThen> holders = HoldersOf(facts, moment);
  Bytes too_much = Bytes(0) - facts.limits.idle_memory;
  for (const WorkerMemory& memory : facts.memory) {
    if (memory.spare == kUnlimitedBytes) return std::nullopt;
    too_much = too_much - memory.spare;
  }
  for (const HolderThen& holder : holders) too_much += holder.stash + holder.queued;
  if (too_much <= Bytes(0)) return std::nullopt;
  const auto enough = [&](Nanos time) {
    Bytes away = WithHost(facts, holders, time);
    for (const HolderThen& holder : holders) {
      away += holder.recompute.Within(time - holder.own_path);
    }
    for (size_t worker = 0; worker < facts.memory.size(); ++worker) {
      const Bytes in = BytesMoved(FastestIn(facts.limits.uplink[worker]), time);
      away += StandingAwayAtMost(facts.memory[worker], facts.host_steps[worker], in);
    }
    return too_much <= away;
  };
  return BoundPart{absl::StrCat("lenders while worker ", moment.worker, " is full"),
                   LeastTime(enough)};
}

}  // namespace siphon
