#ifndef SIPHON_LAUNCH_RUN_RECORD_MEMORY_LINE_H_
#define SIPHON_LAUNCH_RUN_RECORD_MEMORY_LINE_H_

#include <string>

#include "launch/run/job/prepare_job.h"

namespace siphon {

// What the plan does so that the job fits into memory.capacity, in a sentence: who would not fit
// otherwise, who parks how much where, whose optimizer steps are on the host, which layers are
// computed again, how long a step should take, and what has no second choice. Empty where
// everything is kept.
std::string MemoryLine(const PreparedJob& prepared);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_MEMORY_LINE_H_
