// Unified memory: no copies are asked for. Pages of the earliest layers are evicted when a forward
// needs room, and a backward that touches them faults; with prefetch they come back beside the
// computation, as in the paper's UM-Chainer (4.3).

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/performance/out_of_core_equations.h"
#include "planner/performance/strategies.h"
#include "planner/performance/task_list.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Shares of the pinned copies' rate, in percent. The paper says that prefetch is slower than pinned
// copies except for very large buffers (Figure 6) without printing rates, and nothing of faults.
// ASSUMED: faults and evictions on demand move pages at half the rate of copies, which is what
// streaming over pages that are elsewhere gets on PCIe; prefetch gets nine tenths.
constexpr int64_t kOnDemandPercent = 50;
constexpr int64_t kPrefetchPercent = 90;

Nanos PagesTime(Bytes bytes, BytesPerSecond copies, Nanos latency, int64_t percent) {
  const BytesPerSecond rate(std::max<int64_t>(1, copies.value / 100 * percent));
  return CopyTime(bytes, rate, latency);
}

Nanos EvictTime(const OutOfCoreProblem& problem, Bytes bytes) {
  return PagesTime(bytes, problem.path.out, problem.path.latency, kOnDemandPercent);
}

Nanos FaultTime(const OutOfCoreProblem& problem, Bytes bytes) {
  return PagesTime(bytes, problem.path.in, problem.path.latency, kOnDemandPercent);
}

Nanos PrefetchTime(const OutOfCoreProblem& problem, Bytes bytes) {
  return PagesTime(bytes, problem.path.in, problem.path.latency, kPrefetchPercent);
}

Bytes PositivePart(Bytes bytes) { return std::max(bytes, Bytes(0)); }

// Bytes that leave: `evicts` while layer l runs forward, `away` of layer l's own. Pages leave in
// the order in which they were written.
struct Paging {
  std::vector<Bytes> evicts;
  std::vector<Bytes> away;
};

Paging PagesThatLeave(const OutOfCoreProblem& problem) {
  Paging paging;
  const Bytes excess = PositivePart(SavedBytes(problem) - problem.capacity);
  Bytes before;
  for (const OutOfCoreLayer& layer : problem.layers) {
    const Bytes through = before + layer.saved;
    paging.evicts.push_back(PositivePart(through - problem.capacity) -
                            PositivePart(before - problem.capacity));
    paging.away.push_back(std::min(PositivePart(excess - before), layer.saved));
    before = through;
  }
  return paging;
}

int LayersAway(const Paging& paging) {
  return static_cast<int>(std::count_if(paging.away.begin(), paging.away.end(),
                                        [](Bytes bytes) { return bytes.value > 0; }));
}

// Lists all forwards with the evictions before them; the last forward's index, -1 without layers.
int ListForwards(TaskList& list, const OutOfCoreProblem& problem, const Paging& paging) {
  int forward = -1;
  for (size_t layer = 0; layer < problem.layers.size(); ++layer) {
    const int index = static_cast<int>(layer);
    const Bytes evicted = paging.evicts[layer];
    if (evicted.value > 0) list.Evict(index, evicted, EvictTime(problem, evicted));
    forward = list.Forward(index);
  }
  return forward;
}

// Equal layers: of the first excess layer a part, of all later ones everything.
struct EqualPaging {
  EqualLayers equal;
  int64_t whole = 0;  // layers of which all pages leave
  Bytes part;         // of one more layer
  bool fits = true;
};

absl::StatusOr<EqualPaging> EqualPagesThatLeave(const OutOfCoreProblem& problem) {
  EqualPaging paging;
  SIPHON_ASSIGN_OR_RETURN(paging.equal, EqualLayersOf(problem));
  const EqualLayers& equal = paging.equal;
  paging.fits = equal.buffers == equal.layers;
  if (paging.fits) return paging;
  paging.whole = equal.layers - equal.buffers - 1;
  paging.part = equal.saved * (equal.buffers + 1) - problem.capacity;
  return paging;
}

Nanos ForwardTime(const OutOfCoreProblem& problem, const EqualPaging& paging) {
  const Nanos compute = paging.equal.forward * paging.equal.layers;
  return compute + EvictTime(problem, paging.equal.saved) * paging.whole +
         EvictTime(problem, paging.part);
}

}  // namespace

absl::StatusOr<OutOfCoreTasks> UnifiedMemoryTasks(const OutOfCoreProblem& problem) {
  const Paging paging = PagesThatLeave(problem);
  TaskList list(problem);
  ListForwards(list, problem, paging);
  for (int layer = static_cast<int>(problem.layers.size()) - 1; layer >= 0; --layer) {
    const Bytes away = paging.away[layer];
    if (away.value > 0) list.Fault(layer, away, FaultTime(problem, away));
    list.Backward(layer, problem.layers[layer].saved);
  }
  return std::move(list).Done(LayersAway(paging));
}

absl::StatusOr<Nanos> UnifiedMemoryClosedForm(const OutOfCoreProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const EqualPaging paging, EqualPagesThatLeave(problem));
  if (paging.fits) return ComputeTime(problem);
  return ForwardTime(problem, paging) + paging.equal.backward * paging.equal.layers +
         FaultTime(problem, paging.equal.saved) * paging.whole + FaultTime(problem, paging.part);
}

absl::StatusOr<OutOfCoreTasks> PrefetchedUnifiedMemoryTasks(const OutOfCoreProblem& problem) {
  const Paging paging = PagesThatLeave(problem);
  TaskList list(problem);
  const int last_forward = ListForwards(list, problem, paging);
  for (int layer = static_cast<int>(problem.layers.size()) - 1; layer >= 0; --layer) {
    const Bytes away = paging.away[layer];
    std::vector<int> after;
    if (away.value > 0) {
      after.push_back(list.CopyIn(layer, away, PrefetchTime(problem, away), {last_forward}));
    }
    list.Backward(layer, problem.layers[layer].saved, after);
  }
  return std::move(list).Done(LayersAway(paging));
}

// As capacity-based swapping in its backward, with a first copy that may be shorter: the second
// starts when it has ended and a second buffer is free.
absl::StatusOr<Nanos> PrefetchedUnifiedMemoryClosedForm(const OutOfCoreProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const EqualPaging paging, EqualPagesThatLeave(problem));
  if (paging.fits) return ComputeTime(problem);
  const EqualLayers& equal = paging.equal;
  const Nanos first = PrefetchTime(problem, paging.part);
  const Nanos others = PrefetchTime(problem, equal.saved) * paging.whole;
  const Nanos forward = ForwardTime(problem, paging);
  if (equal.buffers <= 1) return forward + equal.backward * equal.layers + first + others;
  const Nanos second_starts = paging.whole > 0 ? std::max(first, equal.backward) : first;
  return forward + equal.backward +
         std::max(equal.backward * (equal.layers - 1), equal.backward + second_starts + others);
}

}  // namespace siphon
