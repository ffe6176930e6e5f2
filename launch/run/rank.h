#ifndef SIPHON_LAUNCH_RUN_RANK_H_
#define SIPHON_LAUNCH_RUN_RANK_H_

#include "launch/config/job_config.h"
#include "launch/run/command_line.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/job/shared_plan.h"
#include "launch/run/open_device.h"

namespace siphon {

// Before MPI_Init: makes this process one that ends with the launcher that started it, and knows
// devices by the numbers that the job has for them.
void BecomeRank(const JobConfig& job, bool share_gpu);

// One worker process of a job, inside a world that mpirun or srun made and that has as many ranks
// as the plan has workers: joins it, trains, leaves it together with all others. Rank 0
// prints the outcome when `format` is JSON. Returns the exit code. On a failure of any rank it does
// not return: the parent, or without one the lowest living rank, reports it, and all ranks end.
// `open`: for jobs on CUDA devices; tests bring their own.
int RunRank(SharedPlan& shared, const PreparedJob& prepared, OutputFormat format,
            const DeviceOpener& open = OpenCudaDevice);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RANK_H_
