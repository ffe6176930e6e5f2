#ifndef SIPHON_TESTS_LAUNCH_RUN_TIGHT_MEMORY_H_
#define SIPHON_TESTS_LAUNCH_RUN_TIGHT_MEMORY_H_

#include <string>
#include <vector>

#include "launch/run/job/prepare_job.h"
#include "tests/conformance/memory_shapes.h"

namespace siphon {

// A strategy against reality: jobs with too little memory to keep everything.
struct TightStrategy {
  std::string name;
  bool (*lets_leave)(const PreparedJob& prepared);  // whether the plan lets activations leave
  double least_percent = 0;                         // that a prediction is above what was measured
  // And at most: of little memory in all, the room that is held for one layer and for what is sent
  // is much.
  double most_percent = 25;
  std::string transport = "auto";  // "mpi": senders hold what they sent until it is asked for
};

// Plans and trains the schedule in every second of its cases, with one or two of the strategies in
// turn, at 95, 80 or 65 % of what keeping everything takes: the first of them, each in its turn, at
// which something leaves; all cases, strategies and parts with SIPHON_TEST_ALL=1. Expects that no
// worker's books ever count more than its capacity, with what others park there, and that what was
// predicted is close; and that something leaves in one of them, but where the backward is split:
// what waits for W is often more than what would leave.
void ExpectWithinCapacities(const std::string& schedule,
                            const std::vector<TightStrategy>& strategies);

// The same of one case and strategy, at the least of these parts at which something leaves. Whether
// there is one.
bool ExpectWithinCapacities(const MemoryCase& one, const TightStrategy& strategy);

// All live schedules but the one that is a file's.
std::vector<std::string> TightScheduleNames();

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_TIGHT_MEMORY_H_
