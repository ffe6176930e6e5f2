#ifndef SIPHON_PIPELINE_STEP_RECORDER_H_
#define SIPHON_PIPELINE_STEP_RECORDER_H_

#include <chrono>
#include <utility>

#include "planner/timeline.h"

namespace siphon {

// Writes down when one worker was busy and when it waited, from the construction of the recorder
// on. Intervals follow each other without overlap, since each begins no earlier than the one before
// ended.
//
// Thread-safety: one thread.
class StepRecorder {
 public:
  void BeginAction(const Action& action) {
    action_ = action;
    since_ = Now();
  }
  // Time so far was busy; from now on the action waits.
  void BeginWait() { Close(IntervalKind::kBusy); }
  void EndWait() { Close(IntervalKind::kWait); }
  void EndAction() { Close(IntervalKind::kBusy); }
  // A part of the action that has a name of its own.
  void BeginPart(const Action& part) {
    Close(IntervalKind::kBusy);
    whole_ = std::exchange(action_, part);
  }
  void EndPart() {
    Close(IntervalKind::kBusy);
    action_ = whole_;
  }

  WorkerTimeline TakeTimeline() { return std::move(timeline_); }

 private:
  using Clock = std::chrono::steady_clock;

  Nanos Now() const {
    return Nanos(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count());
  }

  void Close(IntervalKind kind) {
    const Nanos now = Now();
    if (now > since_) timeline_.push_back({action_, kind, since_, now});
    since_ = now;
  }

  const Clock::time_point begin_ = Clock::now();
  Action action_;
  Action whole_;  // while a part is under way
  Nanos since_;
  WorkerTimeline timeline_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STEP_RECORDER_H_
