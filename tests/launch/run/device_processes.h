#ifndef SIPHON_TESTS_LAUNCH_RUN_DEVICE_PROCESSES_H_
#define SIPHON_TESTS_LAUNCH_RUN_DEVICE_PROCESSES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "tests/launch/run/parking_job.h"

namespace siphon {

// Whole jobs whose workers are processes on fake CUDA devices (device_program.cc): messages by
// NCCL, lent memory opened by IPC, locked memory of the host.
class DeviceProcesses : public ParkingJob {
 protected:
  static constexpr int64_t kDeviceMemory = int64_t{2} << 30;

  void SetUp() override;

  // The program alone starts an mpirun of its own.
  enum class Launcher { kMpirun, kAlone };
  struct Start {
    std::string environment;  // "NAME=value", with blanks between them
    std::string options;      // behind the job's file
    int workers = 4;
    Launcher launcher = Launcher::kMpirun;
  };
  struct End {
    int exit_code = -1;
    std::string said;
  };
  // The job of JobFile.
  End Run(const Start& start) const;
  // Its output is in the folder's "cuda".
  void JobFile(int workers, const std::string& strategy, int percent) const;

  std::map<std::string, std::string> Trained() const;
  // The same job, with workers on the CPU.
  std::map<std::string, std::string> OnCpu() const;

  static int Count(const std::string& words, const std::string& text);
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_DEVICE_PROCESSES_H_
