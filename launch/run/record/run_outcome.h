#ifndef SIPHON_LAUNCH_RUN_RECORD_RUN_OUTCOME_H_
#define SIPHON_LAUNCH_RUN_RECORD_RUN_OUTCOME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/units.h"

namespace siphon {

enum class RunEnd { kDone, kStopped };

// How a run ended, seen from worker 0 (others have the same but for the warnings).
struct RunOutcome {
  RunEnd end = RunEnd::kDone;
  int64_t steps_done = 0;  // of the job, earlier runs included
  int64_t first_step = 0;  // of them in earlier runs
  double last_loss = 0;    // 0 where this run has done no step
  std::optional<double> last_validation_loss;
  std::string last_checkpoint;        // empty: none was written
  int64_t checkpoint_step = 0;        // of the last checkpoint
  std::vector<std::string> warnings;  // to be said again at the end
  Bytes host_peak;                    // what all workers of a host had of it at once, at most
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_RUN_OUTCOME_H_
