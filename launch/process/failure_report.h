#ifndef SIPHON_LAUNCH_PROCESS_FAILURE_REPORT_H_
#define SIPHON_LAUNCH_PROCESS_FAILURE_REPORT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "launch/process/board.h"

namespace siphon {

// The one report of a job that failed: who, where, why, what is left and how to go on. Ends in a
// newline. Empty when the board shows no failure. `observed`, if not empty, is what the parent
// knows better about the end of a lost worker's process ("killed by signal 9 (Killed)"), unless it
// has but ended with the job's exit code as others do.
//
//   siphon: worker 2 was lost (rank 2, pid 4242, killed by signal 9 (Killed)) during 2F5
//     the job ended after step 17; the last complete checkpoint is runs/x/checkpoints/step-00000010
//     continue with: siphon train job.yaml --set checkpoint.resume=auto
std::string FailureReport(const Board& board, absl::string_view observed = "");

// The last two lines alone, for an end that is nobody's failure.
std::string WhatIsLeft(const Board& board);

// Without a parent one rank has to print the report: whether it is `rank`, the lowest one that
// lives and is not the lost one; of ranks elsewhere it is not known, so they do.
bool IsReporter(const Board& board, int rank);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_FAILURE_REPORT_H_
