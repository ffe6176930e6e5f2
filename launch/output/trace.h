#ifndef SIPHON_LAUNCH_OUTPUT_TRACE_H_
#define SIPHON_LAUNCH_OUTPUT_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/simulator/simulated_step.h"
#include "planner/timeline.h"

namespace siphon {

// One step of all workers in the trace event format that Perfetto and chrome://tracing read: a
// process named `title`, a thread a worker, an event an interval, named as its action ("wait for
// 2F5" for a wait) and with the colours of action_colors.h. Times in microseconds. The same for a
// predicted and a measured step.
std::string TraceJson(const std::string& title, const std::vector<WorkerTimeline>& workers);

// The same of a simulated step, with a thread for each lane that carried messages or copies, and a
// counter of each worker's bytes by kind.
std::string TraceJson(const std::string& title, const SimulatedStep& step);

// TraceJson as a file, replaced whole. Errors: as of WriteTextFile.
absl::Status WriteTrace(const std::string& path, const std::string& title,
                        const std::vector<WorkerTimeline>& workers);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TRACE_H_
