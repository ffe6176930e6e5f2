#ifndef SIPHON_PLANNER_MAPPING_TIMED_FLOW_H_
#define SIPHON_PLANNER_MAPPING_TIMED_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "planner/units.h"

namespace siphon {

// A flow network whose arcs carry more the more time they have: min(limit, rate * time), in whole
// granules. Node 0 is the source, node 1 the sink.
//
// LeastTime is found by Newton's method on minimum cuts (parametric maximum flow: Gallo,
// Grigoriadis and Tarjan, 1989; the discrete Newton method: Radzik, 1993): what the minimum cut at
// one time lets through bounds the time from below, and so gives the next time to try.
class TimedFlow {
 public:
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;
  static constexpr int64_t kNoLimit = int64_t{1} << 60;
  // No limit or rate holds at this time, and no time is longer.
  static constexpr Nanos kLongest{int64_t{1} << 62};

  // Requires: nodes >= 2, granule > 0.
  TimedFlow(int nodes, Bytes granule);

  // Returns the number of the arc, from 0 on. `limit` is in granules; `rate` in bytes a second,
  // INT64_MAX for an arc that needs no time. Requires: neither is negative, limit <= kNoLimit, and
  // what leaves the source has limits whose sum is at most kNoLimit.
  int AddArc(int from, int to, int64_t limit, int64_t rate);
  // Carries nothing before `opens`, then `limit`.
  int AddGate(int from, int to, int64_t limit, Nanos opens);
  // From now on the arc carries what it does at `time`, whatever time there is.
  void FixArc(int arc, Nanos time);

  // The most that is ever carried, in granules.
  int64_t MostFlow();
  // The least time, not below `from`, in which `target` granules are carried. Flow() is then such a
  // flow. Requires: target <= MostFlow().
  Nanos LeastTime(int64_t target, Nanos from);
  // Nodes that the source still reaches after as much as possible has been sent in `time`: their
  // side of a minimum cut.
  std::vector<bool> SourceSideAt(Nanos time);

  int64_t Flow(int arc) const;                  // granules, after LeastTime
  int64_t Capacity(int arc, Nanos time) const;  // granules

 private:
  static constexpr int kNone = -1;

  struct Arc {
    int to = 0;
    int64_t limit = 0;
    int64_t rate = 0;
    Nanos opens;         // gates: rate is INT64_MAX
    int64_t left = 0;    // what more it can carry now; of the reverse arc, what can be taken back
    int next = kNone;    // of the same node
    absl::uint128 full;  // rate * time with which it carries its limit for sure
  };

  const Arc& Forward(int arc) const { return arcs_[static_cast<size_t>(arc) * 2]; }
  const Arc& Reverse(int arc) const { return arcs_[static_cast<size_t>(arc) * 2 + 1]; }
  int Add(int from, int to, const Arc& arc);
  void Append(int node, int arc);
  void Reset(Nanos time);
  void Widen(Nanos time);
  int64_t Augment();
  bool Level();
  int64_t Push(int node, int64_t most);
  int64_t CutCapacity(Nanos time) const;
  Nanos TangentOfCut(Nanos time, int64_t target) const;
  Nanos NextTime(Nanos time, int64_t target) const;

  absl::uint128 granule_;    // in units of rate * time
  std::vector<Arc> arcs_;    // an arc and its reverse are 2 k and 2 k + 1
  std::vector<int> first_;   // [node]: its arcs, in the order in which they were added
  std::vector<int> last_;    // [node]
  std::vector<int> level_;   // [node]; -1: the source does not reach it
  std::vector<int> coming_;  // [node]: its next arc to be tried
  std::vector<int> queue_;
  std::vector<int> cut_;  // arcs that leave the source's side
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_MAPPING_TIMED_FLOW_H_
