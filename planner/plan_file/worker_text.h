#ifndef SIPHON_PLANNER_PLAN_FILE_WORKER_TEXT_H_
#define SIPHON_PLANNER_PLAN_FILE_WORKER_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/ids.h"
#include "planner/plan_file/plan_words.h"
#include "planner/plan_text.h"

namespace siphon {

// A section "worker N" while it is read.
struct WorkerLines {
  PlanWorker worker;
  std::vector<DeviceId> devices;  // of this worker in each replica; empty: not said
  PlanWord device;                // where they stand
};

// The lines of a worker, each indented; may be none.
std::string LinesOfWorker(const PlanWorker& worker, const std::vector<DeviceId>& devices);

// Reads one of them. Errors: InvalidArgument with the place.
absl::Status ReadWorkerLine(const PlanPair& pair, WorkerLines& lines);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_WORKER_TEXT_H_
