#ifndef SIPHON_LAUNCH_RUN_FOLLOW_REPLANNER_H_
#define SIPHON_LAUNCH_RUN_FOLLOW_REPLANNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/run/follow/plan_follower.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/link_watch.h"
#include "launch/run/seat/measured_steps.h"
#include "planner/plan_text.h"
#include "planner/timeline.h"
#include "planner/units.h"

namespace siphon {

// Plans a running job once more, by what its steps 3 to 7 took (memory.replan), and says what came
// of it. Worker 0 plans while the others wait, as long as planning the job took at most, and tells
// them; nothing is planned where everything was kept from the begin, the job follows a
// plan file (memory.plan), or second choices are in force.
//
// Thread-safety: one thread, the worker's. The arguments outlive this.
class Replanner {
 public:
  Replanner(const PreparedJob& prepared, Coordinator& coordinator);

  // After each training step of this run, on every worker.
  void Note(const WorkerTimeline& timeline, Nanos step, const std::vector<LinkState>& links);
  // Collective, between two steps, `steps` done: the plan to move to, the same on all workers.
  // Errors: those of the transport; what planning meets is a note.
  absl::StatusOr<std::optional<PlanText>> Decide(const PlanFollower& follower, int64_t steps);
  // The run follows that plan from now on.
  void Moved(Nanos moving);
  int64_t replans() const { return moved_ ? 1 : 0; }

  // What was decided and what came of it, in a sentence each; worker 0 alone has any.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  std::string Plan(const PlanFollower& follower, const MeasuredRun& measured);
  void NoteEffect(Nanos step);

  const PreparedJob& prepared_;
  Coordinator& coordinator_;
  bool decides_;  // still
  MeasuredSteps measured_;
  std::string decision_;  // what worker 0 has to say
  Nanos predicted_;       // by the new plan
  Nanos before_;          // measured by the old one
  bool moved_ = false;
  std::vector<Nanos> since_;  // steps behind the move
  std::vector<std::string> notes_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_FOLLOW_REPLANNER_H_
