#ifndef SIPHON_LAUNCH_PROCESS_STALL_WATCH_H_
#define SIPHON_LAUNCH_PROCESS_STALL_WATCH_H_

#include <cstdint>
#include <vector>

#include "launch/process/board.h"
#include "planner/units.h"

namespace siphon {

// Finds a job that stands still though all its ranks live: in one of them a call does not come back
// (a copy, a page of a mapped file, a driver), the others wait for it, and every heartbeat goes on.
// Where no rank has begun an action or a phase for `timeout`, a rank that does not even wait for
// its peers is declared lost; if all do, the first one that runs. Time is counted in calls of Tick,
// as in LossWatch.
//
// Thread-safety: one thread.
class StallWatch {
 public:
  // `timeout` 0: never.
  StallWatch(Board* board, Nanos timeout, Nanos period);

  // Declares on the board what it finds. Call once a period.
  void Tick();

 private:
  struct Seen {
    int64_t actions = -1;
    int64_t waits = -1;
    Nanos quiet;  // since either changed
  };
  // Whether any rank has begun something since the last call.
  bool Look();
  // Of the ranks that run, the first of those that are quiet for longest.
  int Culprit() const;

  Board* board_;
  Nanos timeout_;
  Nanos period_;
  Nanos still_;
  std::vector<Seen> seen_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_STALL_WATCH_H_
