#ifndef SIPHON_PLANNER_BOUNDS_LENDER_BOUND_H_
#define SIPHON_PLANNER_BOUNDS_LENDER_BOUND_H_

#include <optional>

#include "planner/bounds/counting/combinatorial_bound.h"
#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/facts/full_moments.h"

namespace siphon {

// What a worker and all its lenders cannot hold together while it is full, by counting in exact
// integers: the sum over all devices of what is live for certain then, beyond their capacities.
// Each of these bytes
// - is computed again, in the step's time beyond its worker's own actions;
// - of activations, is with the host, out and back over the uplinks of its worker and of those that
//   share them, at their rates for the whole step; or
// - of parameters, gradients and optimizer state, is with the host, as StandingAwayAtMost.
// The bound is the least time at which that is enough. None where a worker has no capacity, where
// all have room for everything, and for replicas. Grows, or stays, when a capacity or a rate
// shrinks.
std::optional<BoundPart> LenderBound(const BoundFacts& facts, const FullMoment& moment);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_LENDER_BOUND_H_
