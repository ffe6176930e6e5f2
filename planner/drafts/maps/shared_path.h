#ifndef SIPHON_PLANNER_DRAFTS_SHARED_PATH_H_
#define SIPHON_PLANNER_DRAFTS_SHARED_PATH_H_

#include <vector>

#include "absl/types/span.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

// Before which the tasks of a graph cannot begin and end, where some of them also occupy machines
// that others use: its longest path, in which a task ends no sooner than its machine can have done
// all that has to be done there up to it. However a machine shares itself, and whatever else is
// shared, a run in which each task takes as long or longer is never over sooner.
//
// For graphs of which many durations and ways to share are tried.
class SharedPath {
 public:
  // Tasks of one lane, in its order: the machine that one of them occupies is that of all.
  using Chain = std::vector<int>;
  // What chains have in common: it does so much a second, of one task or of several at once. Each
  // of them begins on it no sooner than `latency` behind its own begin.
  struct Machine {
    std::vector<int> chains;
    Nanos latency;
  };

  // Requires: no tasks wait for each other (they can all be run), a task is in one chain at most.
  SharedPath(const TaskGraph& graph, const std::vector<Chain>& chains);

  // [task]: `durations` of each alone, `works` of those in chains, the time that their machine
  // takes for one of them alone. A chain is of one machine at most. O(tasks + dependencies), and
  // for each task on a machine the square of its chains.
  void Run(absl::Span<const Nanos> durations, absl::Span<const Nanos> works,
           absl::Span<const Machine> machines);

  Nanos length() const { return length_; }
  // [task]: when it begins at the earliest, and how long from its end to the end of all, at least.
  const std::vector<Nanos>& begin() const { return forwards_.begin; }
  const std::vector<Nanos>& tail() const { return backwards_.begin; }

 private:
  // Up to a job's end a machine has to do all of what begins at `since` or later: until then.
  struct Period {
    Nanos since;
    Nanos until;
  };
  // Since the first job that is known, and the one that lasts longest.
  struct Periods {
    Period whole;
    Period longest;
  };

  // The graph from one of its ends: time goes backwards from the other. Jobs are tasks in chains,
  // those of a chain one after the other, in the order in which they come from that end.
  struct Side {
    std::vector<int> order;  // tasks, each behind all that come before it
    // Those right behind task t are next[first_next[t]] to those of the next task.
    std::vector<int> first_next;
    std::vector<int> next;
    std::vector<int> jobs;      // [job]: task
    std::vector<int> job_of;    // [task]; -1: in no chain
    std::vector<int> reached;   // [job][chain]: how many jobs of the chain are before it, or are it
    std::vector<Nanos> begin;   // [task]
    std::vector<Nanos> begins;  // [job]: the same
    std::vector<Nanos> done;    // [job], and behind the last: works of all jobs before it
    std::vector<Periods> periods;  // [job]
  };

  int chains() const { return static_cast<int>(first_job_.size()) - 1; }
  void AddJobs(const std::vector<Chain>& chains);
  void FindReached(Side& side) const;
  void RunSide(absl::Span<const Nanos> durations, absl::Span<const Nanos> works,
               absl::Span<const Machine> machines, Side& side);
  Nanos WorkSince(const Side& side, int chain, int from, int to, Nanos since) const;
  Periods PeriodsOf(const Side& side, const Machine& machine, int job) const;
  Period WithMore(const Side& side, const Machine& machine, Period period, const int* known,
                  const int* reached) const;
  const int* ReachedBy(const Side& side, int job) const {
    return side.reached.data() + static_cast<size_t>(job) * static_cast<size_t>(chains());
  }

  std::vector<int> first_job_;   // [chain], and behind the last
  std::vector<int> chain_of_;    // [job]
  std::vector<int> machine_of_;  // [chain], in a run; -1: none
  Side forwards_;
  Side backwards_;
  Nanos length_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_SHARED_PATH_H_
