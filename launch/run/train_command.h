#ifndef SIPHON_LAUNCH_RUN_TRAIN_COMMAND_H_
#define SIPHON_LAUNCH_RUN_TRAIN_COMMAND_H_

#include "launch/run/command_line.h"
#include "launch/run/job/model_factory.h"
#include "launch/run/job_devices.h"

namespace siphon {

// `siphon train`: reads and prepares the job, then becomes the parent of an mpirun, or, inside a
// world that exists already, one of its ranks. `devices`: of jobs on devices. Returns the exit code
// of the contract.
int TrainCommand(int* argc, char*** argv, const TrainArguments& arguments,
                 const ModelFactory& factory, const JobDevices& devices = {});

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_TRAIN_COMMAND_H_
