#ifndef SIPHON_PLANNER_BOUNDS_AWAY_LIMITS_H_
#define SIPHON_PLANNER_BOUNDS_AWAY_LIMITS_H_

#include <cstdint>
#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/units.h"

namespace siphon {

// So many equal parts of activations, each computed again in that time.
struct RecomputableParts {
  Bytes bytes;
  Nanos time;
  int64_t count = 0;
};

// What a worker can drop, those with most bytes a nanosecond first.
class RecomputeLimit {
 public:
  explicit RecomputeLimit(std::vector<RecomputableParts> parts);

  // The most bytes that are computed again within the time, part of one counted; 0 where it is
  // negative.
  Bytes Within(Nanos time) const;

 private:
  std::vector<RecomputableParts> parts_;
};

// The most bytes of a worker's parameters, gradients and optimizer state that are away at one time,
// if no more than `moved_in` come in within a step: each comes in at least once, but for optimizer
// state that the host steps, for which a byte of parameters may stand.
Bytes StandingAwayAtMost(const WorkerMemory& memory, const HostStep& host_step, Bytes moved_in);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_AWAY_LIMITS_H_
