#ifndef SIPHON_LAUNCH_RUN_JOB_PREPARE_JOB_H_
#define SIPHON_LAUNCH_RUN_JOB_PREPARE_JOB_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "launch/data/dataset.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/lend_second_choices.h"
#include "launch/run/job/model_factory.h"
#include "pipeline/torch/layers.h"
#include "planner/drafts/planning_problem.h"
#include "planner/topology.h"
#include "planner/training_plan.h"
#include "swap/parking_layout.h"

namespace siphon {

// Everything that a worker needs, decided and opened; the same in every process of the job.
struct PreparedJob {
  JobConfig job;
  Model model;  // in train.precision
  Dataset data;
  TrainingPlan plan;
  TrainingPlan whole;  // with everything kept, where `plan` does not
  PlanText plan_text;  // the plan with what it costs, by pipeline.profile where there is one
  std::optional<Topology>
      throttled;  // whose rates links are held to, drives as planned; none: no rates
  // [worker]; empty where nobody parks anything, or has steps on the host.
  std::vector<WorkerParking> parking;
  SecondLending second;           // what second choices may come to park with lenders
  std::vector<Bytes> host_steps;  // [worker]: of the host, for those steps; empty: there are none
  // Where the plan does not keep everything: the worker that would exceed its capacity most.
  std::optional<Misfit> kept_whole;
  bool was_searched = false;        // the plan, by this process
  bool was_planned_before = false;  // ask_earlier knew it
  // For commands worth typing next.
  std::string program = "siphon";    // as it was called
  std::string resume_command;        // goes on from the newest checkpoint; empty if there is none
  std::string start;                 // checkpoint that the run goes on from; only where one asked
  std::vector<std::string> decided;  // "section.key=value" that the job's own ranks are told
  bool share_gpu = false;            // CUDA workers share devices
};

// Options of the model as the job has them; a vocabulary of 0 is replaced by what the data needs.
absl::StatusOr<ModelOptions> ResolveModelOptions(const JobConfig& job);

// What goes with the search for a plan, where the job needs one and names none.
struct PlanSearch {
  PlanningNews news;  // for someone who waits
  // Asked before it: the plan of another process that has searched; empty: none has.
  std::function<absl::StatusOr<std::string>(const JobConfig& job)> ask_others;
  // Then that: a plan that was found for such a job before; empty: none. Where it cannot be
  // followed, there is a search all the same.
  std::function<std::string(const JobConfig& job)> ask_earlier;
};

// `factory` may be empty: then model.kind decides. Errors: as of what it opens, with the key's
// place in the job file; ResourceExhausted when the job does not fit into memory.capacity; as
// `search.ask_others`.
absl::StatusOr<PreparedJob> PrepareJob(const JobConfig& job, const ModelFactory& factory,
                                       const PlanSearch& search = {});

// Built-in models of planner/models, and "plugin".
absl::StatusOr<Model> MakeConfiguredModel(const JobConfig& job, const ModelOptions& options);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_PREPARE_JOB_H_
