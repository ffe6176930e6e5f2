#ifndef SIPHON_LAUNCH_PROFILE_PLAN_IN_FILE_H_
#define SIPHON_LAUNCH_PROFILE_PLAN_IN_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/config/job_config.h"
#include "launch/plan_job/job_memory.h"
#include "planner/drafts/planning_problem.h"
#include "planner/model_profile.h"
#include "planner/plan_text.h"

namespace siphon {

// A plan file that a job follows instead of being planned (memory.plan): its memory plan, its
// programs and its devices. All else in it is there to be held against the job, and costs are the
// job's.
struct PlanInFile {
  std::string path;
  std::string text;
  PlanText plan;  // of the text
};

// What memory.plan names. Errors: InvalidArgument at that key where the file cannot be read, else
// "PATH:line:column: what is wrong; what would be right".
absl::StatusOr<PlanInFile> LoadPlanInFile(const JobConfig& job);
// The one at that path. Errors: as ReadTextFile, else likewise.
absl::StatusOr<PlanInFile> LoadPlanAt(const std::string& path);
// One in a file's words that is in none; `name` stands for the path. Errors: likewise.
absl::StatusOr<PlanInFile> PlanInText(const std::string& name, std::string text);

// "PATH:line:column", of the value of `key` in a section ("job", "stage 2"); of the section where
// it has no such key, of the file's begin where there is no such section.
std::string PlaceInPlan(const PlanInFile& file, absl::string_view section, absl::string_view key);

// That the plan is one of this job: model, schedule, batch, a strategy that there is, stages with
// their workers and layers, and programs that are the job's but for what moves tensors. Pure.
// Errors: InvalidArgument "PATH:line:column: what the plan has, and what the job; what to do" for
// the first that differs.
absl::Status CheckPlanOfJob(const PlanInFile& file, const PlannedJob& planned);

// Whether the plan moves tensors, or computes optimizer steps on the host.
bool MovesAnything(const MemoryPlan& plan);
bool ParksOnDrives(const MemoryPlan& plan);

// The plan as a step of the job, whose groups have the bytes and times of `problem`: that of its
// job. Simulated, so that it can run. `whole` is the job's profile before HoldWhatCannotMove: a
// group may have the bytes of either, and stripes are cut anew where it had those of `whole`, in
// the same shares. Pure. Errors: as CheckPlanOfJob, where groups or devices are not those of the
// problem; FailedPrecondition and ResourceExhausted, with the path, as Simulate.
absl::StatusOr<PlannedStep> StepInFile(const PlanInFile& file, const PlanningProblem& problem,
                                       const ModelProfile& whole);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PLAN_IN_FILE_H_
