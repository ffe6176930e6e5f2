#ifndef SIPHON_TESTS_LAUNCH_RUN_DEVICE_JOB_H_
#define SIPHON_TESTS_LAUNCH_RUN_DEVICE_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launch/config/job_config.h"
#include "planner/units.h"

namespace siphon {

// `job` for workers on a device or on the CPU, with the same bits: each kind of device draws masks
// by generators of its own, and fuses attention its own way. Output is in a folder of its own.
JobConfig PlainJob(JobConfig job, const std::string& backend, const std::string& folder);

// [worker]: so many hundredths of what tensors take where all of them stay.
std::vector<Bytes> Needs(const JobConfig& job, int64_t percent);

// With a capacity of so many hundredths of what the fullest worker needs: those that lend have
// room.
JobConfig Tight(JobConfig job, const std::string& strategy, int64_t percent);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_DEVICE_JOB_H_
