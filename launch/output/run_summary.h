#ifndef SIPHON_LAUNCH_OUTPUT_RUN_SUMMARY_H_
#define SIPHON_LAUNCH_OUTPUT_RUN_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/units.h"

namespace siphon {

// What is said at the end of a run. Empty texts are left out.
struct RunSummary {
  int64_t first_step = 0;  // steps done before this run
  int64_t steps_done = 0;
  int64_t total_steps = 0;  // more than done: stopped on request
  Nanos duration;           // of this run
  Nanos training;           // of it, in steps: by it tokens a second are said
  int64_t tokens = 0;       // of this run
  double last_loss = 0;
  std::optional<double> last_validation_loss;
  std::string parked;  // as ParkedText and RecomputedText say it
  std::string recomputed;
  std::string checkpoint;
  int64_t checkpoint_step = 0;  // steps that it has
  std::string metrics;
  std::string trace;
  std::vector<std::string> warnings;       // said once before, and again now
  std::vector<std::string> next_commands;  // worth trying
};

// The closing text, lines ended.
std::string ToString(const RunSummary& summary);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_RUN_SUMMARY_H_
