#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_PATIENCE_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_PATIENCE_H_

#include <sched.h>

#include <chrono>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipeline/transport/paced_check.h"
#include "planner/units.h"

namespace siphon {

// One wait for something that NCCL or a peer does: gives the processor away between two looks, asks
// whether the peers are there, and ends with an error when it has taken too long.
//
// Thread-safety: one thread.
class NcclPatience {
 public:
  NcclPatience(Nanos patience, Nanos poll, PacedCheck& check)
      : begin_(std::chrono::steady_clock::now()),
        patience_(patience.value),
        poll_(poll.value),
        check_(check) {}

  // Between two looks. Errors: those of the liveness check; DeadlineExceeded.
  absl::Status Turn() {
    if (absl::Status alive = check_.CheckIfDue(); !alive.ok()) return alive;
    if (turns_++ < kYieldsBeforeSleep) {
      sched_yield();
      return absl::OkStatus();
    }
    if (std::chrono::steady_clock::now() - begin_ > patience_) {
      return absl::DeadlineExceededError(
          absl::StrCat("not within ", FormatNanos(Nanos(patience_.count()))));
    }
    std::this_thread::sleep_for(poll_);
    return absl::OkStatus();
  }

 private:
  static constexpr int kYieldsBeforeSleep = 16;

  const std::chrono::steady_clock::time_point begin_;
  const std::chrono::nanoseconds patience_;
  const std::chrono::nanoseconds poll_;
  PacedCheck& check_;
  int turns_ = 0;
};

// What NCCL meets when a peer is gone is the end of a socket. Which worker that was, and how it
// ended, know those who watch them, a little later: their error, if it comes within `wait`.
inline absl::Status CauseOf(const absl::Status& met, NcclPatience wait) {
  while (!met.ok()) {
    const absl::Status turn = wait.Turn();
    if (absl::IsDeadlineExceeded(turn)) break;
    if (!turn.ok()) return turn;
  }
  return met;
}

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_PATIENCE_H_
