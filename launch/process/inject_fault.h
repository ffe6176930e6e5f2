#ifndef SIPHON_LAUNCH_PROCESS_INJECT_FAULT_H_
#define SIPHON_LAUNCH_PROCESS_INJECT_FAULT_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// "RANK:STEP:PLACE:KIND", as FaultInjector takes it.
struct InjectedFault {
  int rank = 0;
  int64_t step = 0;
  std::string place;
  std::string kind;
};

// For tests: one fault of one rank, at a place that is otherwise hard to hit. Read from the
// environment variable SIPHON_INJECT_FAULT, "RANK:STEP:PLACE:KIND": STEP counts the steps done
// before, PLACE is an action ("2F5") or a phase
// ("writing a checkpoint"), KIND is kill (SIGKILL), stop (SIGSTOP), hang (a call that never comes
// back, while the heartbeat goes on), fail (an error), refuse (memory that is not given:
// ResourceExhausted), or stop_request (SIGUSR1 to itself). With slow, PLACE is a
// link of the rank ("worker 3", "the host"), a hundred times slower from STEP on. "chunk 17" with
// fail is the chunk of that number, from 0, of all that the rank copies from STEP 0 on. "the host"
// with full: somebody takes all that the host has left before the rank takes its part. For
// "memory.capacity" with overlook see OverlooksCapacity. What is none of this CheckInjectedFault
// refuses.
//
// Thread-safety: one thread, but for AtChunk.
class FaultInjector {
 public:
  // Does nothing unless the variable names this rank. Requires: CheckInjectedFault.
  explicit FaultInjector(int rank);

  void set_step(int64_t step) { step_ = step; }
  // Strikes if this is the place; returns the injected error or OK.
  absl::Status At(absl::string_view place);
  // Before a chunk is copied, by any thread; the injected error or OK.
  absl::Status AtChunk();
  // How many times slower than planned the link is to be.
  double SlownessOf(absl::string_view link) const;
  bool FillsHost() const;

 private:
  std::optional<InjectedFault> fault_;
  int64_t step_ = 0;
  std::optional<int64_t> failing_chunk_;
  std::atomic<int64_t> chunks_ = 0;
};

// What a fault can be of.
struct FaultPlaces {
  const Schedule& schedule;         // the job's, of as many ranks as it has workers
  std::vector<std::string> phases;  // all that At hears of outside the actions
};

// That the variable, if it is set, is of such a kind and place; an action of one of the rank's
// stages and of a microbatch that there is. Whether the rank's program has that action is not
// asked: plans change while a job runs. Errors: InvalidArgument with what is wrong and what is
// known.
absl::Status CheckInjectedFault(const FaultPlaces& places);

// Whether the variable is "RANK:STEP:memory.capacity:overlook", of whatever rank and step: a job
// that keeps everything is then not refused before its start where it does not fit.
bool OverlooksCapacity();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_INJECT_FAULT_H_
