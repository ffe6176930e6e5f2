#ifndef SIPHON_PIPELINE_STEP_RECORDER_H_
#define SIPHON_PIPELINE_STEP_RECORDER_H_

#include <chrono>
#include <string>
#include <utility>

#include "pipeline/profiler_marks.h"
#include "planner/action.h"
#include "planner/timeline.h"

namespace siphon {

// Writes down when one worker was busy and when it waited, from the construction of the recorder
// on. Intervals follow each other without overlap, since each begins no earlier than the one before
// ended.
//
// Thread-safety: one thread.
class StepRecorder {
 public:
  StepRecorder() = default;
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;
  // After an error some are under way.
  ~StepRecorder() {
    while (marked_ > 0) EndMark();
  }
  // From now on `marks`, which outlives this, has each action, part and wait as well.
  void Mark(const ProfilerMarks* marks) { marks_ = marks; }

  void BeginAction(const Action& action) {
    action_ = action;
    since_ = Now();
    BeginMark([&] { return ToString(action); });
  }
  // Time so far was busy; from now on the action waits.
  void BeginWait() {
    Close(IntervalKind::kBusy);
    BeginMark([] { return std::string("wait"); });
  }
  void EndWait() {
    Close(IntervalKind::kWait);
    EndMark();
  }
  void EndAction() {
    Close(IntervalKind::kBusy);
    EndMark();
  }
  // A part of the action that has a name of its own.
  void BeginPart(const Action& part) {
    Close(IntervalKind::kBusy);
    whole_ = std::exchange(action_, part);
    BeginMark([&] { return ToString(part); });
  }
  void EndPart() {
    Close(IntervalKind::kBusy);
    action_ = whole_;
    EndMark();
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

  template <typename Name>
  void BeginMark(const Name& name) {
    if (marks_ == nullptr || !marks_->begin) return;
    marks_->begin(name());
    ++marked_;
  }
  void EndMark() {
    if (marked_ == 0) return;
    marks_->end();
    --marked_;
  }

  const Clock::time_point begin_ = Clock::now();
  Action action_;
  Action whole_;  // while a part is under way
  Nanos since_;
  WorkerTimeline timeline_;
  const ProfilerMarks* marks_ = nullptr;
  int marked_ = 0;  // ranges that are open
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STEP_RECORDER_H_
