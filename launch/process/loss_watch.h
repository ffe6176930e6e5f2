#ifndef SIPHON_LAUNCH_PROCESS_LOSS_WATCH_H_
#define SIPHON_LAUNCH_PROCESS_LOSS_WATCH_H_

#include <vector>

#include "launch/process/board.h"
#include "planner/units.h"

namespace siphon {

// Finds ranks that are no more: whose process ended while they were running (of ranks elsewhere
// that is for their own host to see), or whose beats stood still for `timeout`. Time is counted in
// calls of Tick, `period` each, so that a watcher that was itself stopped blames nobody for it.
//
// Thread-safety: one thread.
class LossWatch {
 public:
  static constexpr int kNobody = -1;

  // `self` is not watched.
  LossWatch(Board* board, int self, Nanos timeout, Nanos period);

  // Declares on the board what it finds. Call once a period.
  void Tick();

 private:
  struct Seen {
    int64_t beats = -1;
    Nanos silent;
  };
  Board* board_;
  int self_;
  Nanos timeout_;
  Nanos period_;
  std::vector<Seen> seen_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_LOSS_WATCH_H_
