#ifndef SIPHON_LAUNCH_OUTPUT_METRICS_H_
#define SIPHON_LAUNCH_OUTPUT_METRICS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/units.h"

namespace siphon {

// One worker's part of a step.
struct WorkerMetrics {
  Bytes peak;         // of the step, by the ledger
  Nanos busy;         // computing
  Nanos wait;         // for messages and copies, not hidden by anything
  Nanos swap_wait;    // part of wait, for copies
  Nanos recompute;    // part of busy
  Bytes swapped_d2d;  // out, to each place
  Bytes swapped_host;
  Bytes swapped_nvme;
  int64_t second_choices = 0;  // tensor groups at their second choice
};

// One training step of the whole job.
struct StepMetrics {
  int64_t step = 0;  // steps done, this one included
  double loss = 0;   // mean over the global batch
  double grad_norm = 0;
  double learning_rate = 0;
  Nanos duration;
  int64_t tokens = 0;        // of the global batch
  int64_t samples = 0;       // of the global batch
  double forward_flops = 0;  // of the global batch
  std::optional<double> validation_loss;
  int64_t replans = 0;                 // of this run, before the step
  std::optional<float> loss_scale;     // of the step, where there is one
  int64_t skipped_steps = 0;           // that changed nothing, since the first step
  std::vector<WorkerMetrics> workers;  // by worker
};

// Rates of a step; 0 for one that took no time.
double TokensPerSecond(const StepMetrics& step);
// Backward counted as twice the forward, recomputation not.
double TeraflopsPerSecond(const StepMetrics& step);
// 1 - busy / (workers * step), of all workers together; 0 without workers.
double BubbleFraction(const StepMetrics& step);

// The step as one line of JSON, with the newline. A number that is not finite becomes null.
std::string MetricsLine(const StepMetrics& step);

// metrics.jsonl: one object a step. Each line is one write at the end of the file, so that a killed
// run leaves whole lines.
//
// Thread-safety: one thread.
class MetricsWriter {
 public:
  // Makes the file anew, or, for a run resumed after `resumed_after` steps, keeps the lines of
  // those steps and appends. Errors: InvalidArgument if the file cannot be read or written;
  // ResourceExhausted if the disk is full.
  static absl::StatusOr<std::unique_ptr<MetricsWriter>> Open(
      const std::string& path, std::optional<int64_t> resumed_after = std::nullopt);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // Where the file was removed or moved away, a new one from now on, in a directory that may be
  // new, too. Returns whether it was. Errors: as of Open; FailedPrecondition if another file has
  // been put in its place and it is no more.
  absl::StatusOr<bool> BeginAnewIfGone();
  // Errors: as of Open. A line that could not be written whole is taken back, so a later one may
  // succeed.
  absl::Status Write(const StepMetrics& step);

  const std::string& path() const { return path_; }

 private:
  MetricsWriter() = default;
  absl::Status OpenFile();
  std::string path_;
  int file_ = -1;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_METRICS_H_
