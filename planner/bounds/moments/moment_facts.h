#ifndef SIPHON_PLANNER_BOUNDS_MOMENT_FACTS_H_
#define SIPHON_PLANNER_BOUNDS_MOMENT_FACTS_H_

#include <optional>
#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// The activations of one (stage, microbatch) of a worker, by its moments.
struct MomentLife {
  int stage = 0;  // of the worker
  int forward = 0;
  int backward = 0;  // B or I
  int end = 0;       // B or W
};

// The begin of a compute action: moments are counted from 1 in the order of the program. Moment 0
// is the begin of the step; the last one, behind all actions, the end of the last of them.
struct Moment {
  static constexpr int kNoLife = -1;

  int stage = 0;  // of the worker; this and the others mean nothing at moment 0 and the last one
  Nanos duration;
  Nanos head;               // from the begin of the step, at least
  int ends_life = kNoLife;  // the one whose B or I it is
  bool uses_gradients = false;
  // What the worker holds, if nothing is away: activations of microbatches that wait for their B
  // or I, its own among them; and what cannot be away: between I and W, and workspace.
  Bytes live;
  Bytes fixed;
};

struct WorkerMoments {
  std::vector<Moment> moments;
  std::vector<MomentLife> lives;  // by forward
  std::vector<Bytes> parameters;  // [stage of the worker]
  std::vector<Bytes> gradients;
  Nanos tail;  // from the end of the last compute action to the end of the step, at least
};

// What a compute action waits for, of its own worker and of others.
struct MomentLink {
  int from_worker = 0;
  int from = 0;  // moment; from the end of its action
  int to_worker = 0;
  int to = 0;
  Nanos lag;
};

// A moment as another worker sees it: which of that one's moments is certainly not later, and which
// certainly not earlier; kNone: none is.
struct MomentRange {
  static constexpr int kNone = -1;
  int before = 0;
  int behind = kNone;
};

// All compute actions of all workers as moments, by the order of the schedule alone.
struct MomentFacts {
  std::vector<WorkerMoments> workers;
  std::vector<MomentLink> links;
  std::vector<std::vector<int>> places;  // [worker][moment - 1]: in the worker's program

  // [worker]: the moment of one worker as all see it. O(actions).
  std::vector<MomentRange> Seen(const BoundFacts& facts, int worker, int moment) const;
};

// Of all workers together. So many take the solver two seconds as a rule, with copies that hide
// little; more of them longer than planning.
inline constexpr size_t kMostMoments = 256;

// None where weights change within the step, for replicas, for pairs of actions that overlap, where
// a stage has forwards only, and for schedules of too many actions.
std::optional<MomentFacts> MomentFactsOf(const PlanningProblem& problem, const BoundFacts& facts);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_MOMENT_FACTS_H_
