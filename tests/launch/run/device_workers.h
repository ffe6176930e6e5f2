#ifndef SIPHON_TESTS_LAUNCH_RUN_DEVICE_WORKERS_H_
#define SIPHON_TESTS_LAUNCH_RUN_DEVICE_WORKERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/config/job_config.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/seat/worker_seat.h"
#include "planner/units.h"
#include "swap/device/cuda_module.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"
#include "tests/pipeline/torch/other_torch_device.h"

namespace siphon {

const CudaModule& TheCudaModule();

// The first worker that parks with another one, and where.
struct Lent {
  WorkerId owner;
  ParkingPlace place;
};
Lent FirstLent(const PreparedJob& prepared);

// Whole jobs whose workers compute on a device beside the CPU: LibTorch's tensors are those of a
// device of the CPU's memory and kernels (other_device.h); copies, lent memory and locked memory
// are those of the CUDA module, on the fake runtime.
class DeviceWorkers : public ParkingJob {
 protected:
  using Bits = std::map<std::string, std::string>;

  void SetUp() override;

  JobConfig PlainJob(const std::string& backend) const;
  // On devices.
  JobConfig DeviceJob(const std::string& strategy, int64_t percent) const;
  // What the CPU makes of the job, everything kept.
  Bits OnCpu() const;

  using DeviceChange = std::function<void(WorkerSeat& seat, OtherTorchDevice& torch)>;
  // `limits`: [worker], what LibTorch may have of its device in the end.
  static SeatedRun RunOn(const PreparedJob& prepared, const DeviceChange& change,
                         std::vector<Bytes>* limits = nullptr);

  struct Run {
    SeatedRun seats;
    std::vector<Bytes> limits;  // [worker]
    Bits bits;
  };
  // Requires: all end well.
  static Run Train(const PreparedJob& prepared, const SeatChange& change = nullptr);
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_DEVICE_WORKERS_H_
