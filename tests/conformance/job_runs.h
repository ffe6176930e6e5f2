#ifndef SIPHON_TESTS_CONFORMANCE_JOB_RUNS_H_
#define SIPHON_TESTS_CONFORMANCE_JOB_RUNS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "launch/run/record/run_outcome.h"
#include "pipeline/torch/device/torch_device.h"
#include "planner/model_spec.h"
#include "tests/support/reference_trainer.h"

namespace siphon {

// A folder of its own under the system's temporary one, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// SmallJob in `<folder>/<run>`, on a text that this writes into the folder.
JobConfig SmallTextJob(const ScratchFolder& folder, const std::string& run,
                       const std::string& kind);

// What a job leaves behind that has to be the same bits everywhere.
struct JobResult {
  std::vector<double> losses;          // of each step that this run did
  std::vector<double> gradient_norms;  // before clipping
  std::vector<double> loss_scales;     // of each step, fp16 only
  Bytes largest_peak;                  // of all workers and steps; of runs alone, as the next
  double recompute_seconds = 0;        // of all workers and steps together
  // Likewise: of what left its worker.
  Bytes out_to_peers, out_to_host, out_to_drive;
  reference::NamedValues parameters, first_moments, second_moments;  // after the last
};

// Opens a device for the thread that calls it; it stays as long as the reference trains.
using OpenTorchDevice = std::function<std::unique_ptr<TorchDevice>()>;
// The reference's, from the first step to the last; it reads the same batches. `open`: the device
// that it computes on; null: the CPU.
absl::StatusOr<JobResult> ReferenceResult(const JobConfig& job,
                                          const reference::AccumulationOrders& accumulation = {},
                                          const OpenTorchDevice& open = nullptr);
// As read from metrics.jsonl and the newest checkpoint. Errors: what is missing there.
absl::StatusOr<JobResult> ReadResult(const JobConfig& job);

// A step after which SmallTextJob writes a checkpoint, and where that is.
inline constexpr int kSavedStep = 3;
std::string SavedCheckpoint(const JobConfig& job);
// Expects what the job left behind to be this, from `first_step` on.
void ExpectSame(const JobResult& expected, const JobConfig& job, int first_step);

// Runs the job with all workers as threads of this process.
absl::StatusOr<RunOutcome> TrainInProcess(const JobConfig& job);
// Runs the job as users do: `siphon train` (or the program that SIPHON_PROGRAM names), started
// alone, which launches mpirun. `arguments` and `environment` ("NAME=value") as for a shell.
// Errors: Internal with exit code and what the program printed, unless it ends with exit code 0.
absl::Status TrainWithProgram(const JobConfig& job, const ScratchFolder& folder,
                              const std::string& arguments = "",
                              const std::string& environment = "");

}  // namespace siphon

#endif  // SIPHON_TESTS_CONFORMANCE_JOB_RUNS_H_
