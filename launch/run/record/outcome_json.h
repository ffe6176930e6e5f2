#ifndef SIPHON_LAUNCH_RUN_RECORD_OUTCOME_JSON_H_
#define SIPHON_LAUNCH_RUN_RECORD_OUTCOME_JSON_H_

#include <string>

#include "launch/run/record/run_outcome.h"

namespace siphon {

// What `siphon train --format json` prints at the end, one object with a newline: end ("done" or
// "stopped"), steps_done, loss, validation_loss, checkpoint (each null where there is none),
// warnings.
std::string OutcomeJson(const RunOutcome& outcome);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_OUTCOME_JSON_H_
