#ifndef SIPHON_TESTS_GPU_WORKER_JOBS_H_
#define SIPHON_TESTS_GPU_WORKER_JOBS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/config/job_config.h"
#include "planner/units.h"
#include "tests/conformance/job_runs.h"

namespace siphon {

// Whether SIPHON_GPU=1 says that this machine has a device, which workers share; else jobs are the
// CPU's.
bool OnGpu();
// Whether all cases are to run: on a device, or with SIPHON_TEST_ALL=1. Else few do, so that a
// device meets a source that is known to work.
bool AllCases();

template <typename T>
std::vector<T> AllOrFew(std::vector<T> cases, size_t few) {
  if (!AllCases() && cases.size() > few) cases.resize(few);
  return cases;
}

// Whole jobs by the program, as users run them, and one process that trains alone on the same kind
// of device. Plans have exactly as many devices as workers, so that what is parked at a neighbour
// is in the memory of another process.
class WorkerJobs : public testing::Test {
 protected:
  static void SetUpTestSuite();  // determinism and the environment, as a worker has them

  // What the program is told besides its job.
  static std::string Arguments(const JobConfig& job);
  // The device, for this process; needs one, as OnGpu says.
  static std::unique_ptr<TorchDevice> OpenGpu();
  // One process alone, on the device.
  static JobResult Expected(const JobConfig& job);

  // SmallTextJob with a folder of its own in `folder_`, where everything stays.
  JobConfig JobOf(const std::string& kind, int workers);
  // So much of what the tensors of its fullest worker take where all of them stay, beside messages
  // and the like; others have as much, and may lend what they have left.
  static std::vector<Bytes> Capacity(const JobConfig& job, int64_t percent);
  // The job with as little as its strategy can do with, to a hundredth of `Capacity`; nothing where
  // it saves nothing.
  static std::optional<JobConfig> Tightest(const JobConfig& kept, const std::string& strategy);
  // Expects the job to do so, with these bits and within its capacity.
  void Trains(const JobConfig& job, const JobResult& expected);

  ScratchFolder folder_;

 private:
  std::string ServerOf(int devices) const;

  int runs_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_GPU_WORKER_JOBS_H_
