#ifndef SIPHON_LAUNCH_PROCESS_HEARTBEAT_H_
#define SIPHON_LAUNCH_PROCESS_HEARTBEAT_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "launch/process/board.h"
#include "planner/units.h"

namespace siphon {

// A thread that beats for this rank and watches all others: a rank whose process is gone, or whose
// beats stand still for `timeout`, is declared lost on the board, as is one that holds up all
// others for `stall_timeout` though its beats go on (StallWatch). When the board shows a failure,
// of whatever rank, `on_failure` is called once from that thread; if the process is then still
// there after `grace`, another thread ends it (_exit with the failure's exit code), whatever
// `on_failure` hangs in. A watchdog stopped together with its process (SIGSTOP) counts time by its
// own wake-ups, not by the clock, so that a machine that slept does not lose its workers.
//
// Start it after Board::Enter and before anything that may hang; end it after SetState(kFinished or
// kStopped).
class Heartbeat {
 public:
  struct Options {
    Nanos timeout = Nanos(20'000'000'000);
    Nanos stall_timeout;  // 0: never
    Nanos period = Nanos(100'000'000);
    Nanos grace = Nanos(3'000'000'000);
  };
  Heartbeat(Board* board, int rank, Options options,
            std::function<void(const Board::Failure&)> on_failure);
  ~Heartbeat();  // stops and joins
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // For transports, while they wait for a peer: Unavailable or the failed rank's status once the
  // board shows a failure, else OK. Cheap. Shows on the board that this rank waits.
  absl::Status Check() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_HEARTBEAT_H_
