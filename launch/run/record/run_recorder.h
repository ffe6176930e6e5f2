#ifndef SIPHON_LAUNCH_RUN_RECORD_RUN_RECORDER_H_
#define SIPHON_LAUNCH_RUN_RECORD_RUN_RECORDER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/record/run_outcome.h"
#include "launch/run/seat/step_record.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/timeline.h"
#include "planner/units.h"

namespace siphon {

// What is known of a step on every worker.
struct StepSummary {
  int64_t step = 0;  // steps done, this one included
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  Nanos duration;
  std::optional<double> validation_loss;
  int64_t replans = 0;              // of this run, before the step
  std::optional<float> loss_scale;  // that the step was taken with; fp16 only
  int64_t skipped_steps = 0;        // for gradients that were no numbers, since the first step
};

// What worker 0 leaves in the output directory and shows on standard error.
class RunRecorder {
 public:
  // Makes the directory, writes plan.txt and predicted.trace.json, opens metrics.jsonl (anew, or
  // continuing after `first_step`). `prepared` must outlive this. Errors: InvalidArgument at
  // output.directory when it cannot be written. What goes wrong with a file later becomes a
  // warning; the run goes on.
  static absl::StatusOr<std::unique_ptr<RunRecorder>> Open(const PreparedJob& prepared,
                                                           int64_t first_step);
  ~RunRecorder();

  // After each step: a line of metrics, and the bar moves.
  void Record(const StepSummary& summary, const std::vector<StepRecord>& workers);
  // One step's intervals as measured.trace.json, and beside the predicted ones in report.html.
  void RecordTrace(const std::vector<WorkerTimeline>& workers, int64_t step);
  // From the next step on the run follows `plan`, for the reason that `what` says; steps are held
  // against what that takes.
  void RecordFallBack(const std::string& what, const FollowedPlan& plan);
  // From the next step on the run follows `plan`, made by what it was found to take, as `what`
  // says. That plan goes to replanned.txt, and to the report of the step that is traced next.
  void RecordReplan(const std::string& what, const PlanText& plan);
  // Say it now, above the progress bar.
  void Say(const std::string& line);
  void ShowWarning(const std::string& warning);
  // The closing summary, with all warnings of `outcome` and those of the files written here.
  void Close(const RunOutcome& outcome);

 private:
  struct Impl;
  explicit RunRecorder(std::unique_ptr<Impl> impl);
  void KeepWarning(const std::string& warning);  // for the summary, and shows it
  std::unique_ptr<Impl> impl_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_RUN_RECORDER_H_
