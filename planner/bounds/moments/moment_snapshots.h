#ifndef SIPHON_PLANNER_BOUNDS_MOMENT_SNAPSHOTS_H_
#define SIPHON_PLANNER_BOUNDS_MOMENT_SNAPSHOTS_H_

#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/moments/moment_columns.h"
#include "planner/bounds/moments/moment_facts.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// What the host's step of a worker moves, and what its own step does.
struct StepTraffic {
  int begin = FlowColumns::kNone;  // of its first STEP; none where it has none
  LinearTerms host_out, host_in;   // behind that begin
  LinearTerms state_in;            // over the uplink, behind its last action
};

// What all workers have moved, and what they hold together, at the begin of one worker's action:
// of the others, columns for that instant, which lies between two of their own moments.
//
// Rows, each met by every step that the simulator accepts:
// - up to the instant and from there on, each worker's uplink carries what it moves between its
//   moment before and its moment behind; and shared uplinks what all their workers move;
// - what is with the host then has left before, and is still there or comes in behind;
// - all devices together hold what is neither with the host nor dropped: of microbatches whose
//   forward has ended for certain and whose backward cannot have begun, and all weights and state.
class MomentSnapshots {
 public:
  // All must outlive this.
  MomentSnapshots(const BoundFacts& facts, const MomentFacts& moments,
                  const std::vector<FlowColumns>& flows, const std::vector<StepTraffic>& ends,
                  WindowProgram& made, ProgramRows& rows);

  void Add(int worker, int moment);

 private:
  // One worker then.
  struct Snapshot {
    LinearTerms out, in;            // over its uplink since the begin of the step, at least
    LinearTerms out_rest, in_rest;  // and from then on, STEPs on the host not counted
    bool has_memory = false;        // the next two are known
    LinearTerms away;               // of what follows, on no device, at most
    Bytes live;                     // of microbatches, at least
  };

  Snapshot Own(int worker, int moment) const;
  Snapshot Other(int worker, const MomentRange& range, LinearTerm begin);
  void AddActivations(int worker, const MomentRange& range, Snapshot& then);
  void AddState(int worker, const MomentRange& range, Snapshot& then);
  void AddWeights(int worker, const MomentRange& range, Snapshot& then);
  void AddRates(int worker, const MomentRange& range, LinearTerm begin, Snapshot& then);
  // A column between those two sums.
  LinearTerm Between(const LinearTerms& least, const LinearTerms& most);
  LinearTerm AtMost(const LinearTerms& most);
  void AddShared(int worker, LinearTerm begin, const std::vector<Snapshot>& all);
  void AddMemory(const std::vector<Snapshot>& all);
  Bytes StashOf(int worker, int stage) const;
  void Least(const LinearTerms& terms, double least) { AddMerged(made_.program, terms, least); }

  const BoundFacts& facts_;
  const MomentFacts& moments_;
  const std::vector<FlowColumns>& flows_;  // [worker]
  const std::vector<StepTraffic>& ends_;   // likewise
  WindowProgram& made_;
  ProgramRows& rows_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_MOMENT_SNAPSHOTS_H_
