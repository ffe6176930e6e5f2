#ifndef SIPHON_PLANNER_SIMULATOR_FAIR_SHARE_H_
#define SIPHON_PLANNER_SIMULATOR_FAIR_SHARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

// What went through a capacity.
struct CapacityUse {
  Bytes bytes;
  Nanos busy;  // time with at least one copy under way
  friend bool operator==(const CapacityUse&, const CapacityUse&) = default;
};

// From `since` on, `by`, which it shares, keeps a copy from being faster; -1: nothing but the
// slowest capacity of its own path, or it has ended. Copies begin with -1.
struct LimitChange {
  TaskId copy;
  CapacityId by;
  Nanos since;
  friend bool operator==(const LimitChange&, const LimitChange&) = default;
};

// The copies under way, each at its max-min fair rate: no copy can be made faster without slowing
// one that is not faster (Bertsekas and Gallager, Data Networks, section 6.5.2). Whole bytes a
// second, rounded down; ends rounded up to whole nanoseconds.
class FairShare {
 public:
  // When a copy will end if nothing else changes. Valid while `version` is its newest.
  struct Forecast {
    TaskId copy;
    uint32_t version;
    Nanos end;
  };

  // All that is under way.
  struct State {
    struct Copy {
      TaskId copy;
      uint32_t version = 0;
      int64_t fastest = 0;
      int64_t rate = 0;
      CapacityId limit{-1};
      Nanos since;
      absl::uint128 left;
    };
    std::vector<Copy> copies;
    std::vector<Nanos> busy_since;  // [capacity]; means something where copies are
    std::vector<CapacityUse> uses;  // [capacity]
  };

  // The graph must outlive this, or its last use before the next Restart.
  explicit FairShare(const TaskGraph& graph);
  // As new, but with the memory that it has.
  void Restart(const TaskGraph& graph);

  // Starts moving a copy's bytes. Requires: bytes > 0, and `now` never decreases from call to call.
  void Begin(TaskId copy, Nanos now);
  // The copy has moved all of its bytes.
  void End(TaskId copy, Nanos now);
  // Has bytes left to move.
  bool IsMoving(TaskId copy) const { return flow_of_[copy.value].flow >= 0; }
  // New forecasts of the copies whose rate changed through what began and ended since the last
  // call. Valid until the next call. Looks only at copies that share a capacity, directly or
  // through others, with one that began or ended.
  const std::vector<Forecast>& Settle(Nanos now);

  // Requires: nothing began or ended since the last Settle.
  State Save() const;
  // Goes on from there, with forecasts as they were. Requires: nothing has begun, and the state is
  // of copies of the graph, on the same paths.
  void Restore(const State& state);

  // False for a forecast that a newer one has replaced, or whose copy has ended.
  bool IsNewest(TaskId copy, uint32_t version) const {
    return flow_of_[copy.value].version == version;
  }
  const std::vector<CapacityUse>& uses() const { return uses_; }
  // In the order of time, those since Restore; of one Settle by copy.
  const std::vector<LimitChange>& limits() const { return limits_; }

 private:
  struct Flow {
    TaskId copy;
    int64_t fastest = 0;  // bytes a second through its path alone
    int64_t rate = 0;     // 0: not known yet
    Nanos since;          // `left` is of this time
    absl::uint128 left;   // bytes times 1e9, as is rate times nanoseconds
    CapacityId limit{-1};
    bool seen = false;  // in Settle
  };
  struct Reference {
    int flow = -1;
    uint32_t version = 0;
  };
  struct Wire {  // a capacity's present state
    std::vector<int> flows;
    absl::uint128 demand;  // sum of `fastest`
    Nanos busy_since;
    bool seen = false;
    // In Settle:
    int64_t left = 0;
    int64_t unsettled = 0;
  };

  // In Settle: of a copy.
  struct Speed {
    int64_t rate = 0;  // 0: not known yet
    CapacityId limit{-1};
  };
  // In Fill: a copy that becomes no faster; at its own `fastest`, or by `limit`.
  struct Stop {
    size_t place = 0;
    CapacityId limit{-1};
  };

  const std::vector<CapacityId>& PathOf(TaskId copy) const;
  int64_t RateNow(CapacityId capacity) const;
  // Can limit its copies: they could use more together than it has.
  bool IsBinding(CapacityId capacity) const;
  void MarkAll(CapacityId capacity);
  void DirectionChanged(CapacityId capacity);
  void CollectComponent();
  void Fill();
  bool FillAlike();
  void Settle(int flow, const Speed& speed, Nanos now);
  void Join(int flow, CapacityId capacity);

  const TaskGraph* graph_;
  std::vector<Wire> wires_;
  std::vector<CapacityUse> uses_;
  std::vector<Flow> flows_;
  std::vector<int> free_flows_;
  std::vector<Reference> flow_of_;  // [task]
  std::vector<int> dirty_;          // flows from which the next Settle starts
  std::vector<int> component_;
  std::vector<CapacityId> component_wires_;
  std::vector<Speed> component_speeds_;
  std::vector<Stop> stopping_;
  std::vector<Forecast> forecasts_;
  std::vector<LimitChange> limits_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_FAIR_SHARE_H_
