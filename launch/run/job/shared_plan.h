#ifndef SIPHON_LAUNCH_RUN_JOB_SHARED_PLAN_H_
#define SIPHON_LAUNCH_RUN_JOB_SHARED_PLAN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "launch/mpi_world.h"
#include "launch/run/job/prepare_job.h"

namespace siphon {

// What was searched for, which others of the job's processes need not search for as well; empty:
// nothing was. A plan that the job names all of them read.
std::string PlanThatWasFound(const PreparedJob& prepared);

// How the ranks of a world come to one job and to one plan. Those that a user's own mpirun has
// started have no parent that plans: rank 0 does, and the others wait for what it finds, so that no
// cores are lost to searching for the same.
//
// A rank that needs a plan to go on asks for it first; all ranks join in the end. What a rank asks,
// or, without that, its joining, is collective with the other ranks'. Errors of both: as
// MpiWorld::Init; InvalidArgument, on all ranks alike, where two of them have different jobs;
// Unavailable where the job's launch.heartbeat_timeout or stall_timeout is over (MpiWorld). Where
// not even MPI brings all ranks together within the latter, the process ends.
class SharedPlan {
 public:
  // main's arguments, for MPI_Init.
  SharedPlan(int* argc, char*** argv) : argc_(argc), argv_(argv) {}

  // What rank 0 has found, as text, when it has. Empty: this is rank 0, which has to search; or it
  // has not searched. Once.
  absl::StatusOr<std::string> Ask(const JobConfig& job);

  // The world, for a rank that is prepared. Once.
  absl::StatusOr<std::unique_ptr<MpiWorld>> Join(const PreparedJob& prepared);

 private:
  absl::Status Meet(const JobConfig& job);
  absl::StatusOr<std::string> Share(const std::string& plan);

  int* argc_;
  char*** argv_;
  std::unique_ptr<MpiWorld> world_;
  MpiWorld::Patience patience_;  // of the job
  bool shared_ = false;
};

// Whether all ranks have come to the same plan: not so where hosts differ in something that it is
// made of. Collective. Errors, on all ranks alike: InvalidArgument with two ranks that differ.
absl::Status CheckSamePlan(const PreparedJob& prepared, MpiWorld& world);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_SHARED_PLAN_H_
