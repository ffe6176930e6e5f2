#ifndef SIPHON_LAUNCH_PROFILE_FITTING_STEP_H_
#define SIPHON_LAUNCH_PROFILE_FITTING_STEP_H_

#include <string>

#include "absl/status/statusor.h"
#include "launch/profile/plan_in_file.h"
#include "launch/profile/plan_live_step.h"
#include "launch/profile/worker_problem.h"
#include "planner/plan_text.h"
#include "planner/training_plan.h"

namespace siphon {

// A step of a job that fits into what its workers may hold, with what the job's plan says of it
// when everything is kept.
struct FittingStep {
  LiveStep live;
  PlanText plan;
  std::vector<Bytes> peak_at_most;  // [worker]: BudgetedPlan
};

// The strategy's plan, with second choices; by the job's goal any that fits. Pure. Errors:
// ResourceExhausted where it finds none; as ProblemOfWorkers.
absl::StatusOr<FittingStep> PlanFittingStep(const WorkersOfJob& job, const std::string& strategy);

// The plan of the file. Pure. Errors: ResourceExhausted where it does not fit; as ProblemOfWorkers
// and StepInFile.
absl::StatusOr<FittingStep> FittingStepInFile(const WorkersOfJob& job, const PlanInFile& file);

// The whole plan as its file has it; `whole` is the job's, with everything kept.
absl::StatusOr<PlanText> TextOf(const FittingStep& found, const std::string& strategy,
                                const TrainingPlan& whole);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_FITTING_STEP_H_
