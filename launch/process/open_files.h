#ifndef SIPHON_LAUNCH_PROCESS_OPEN_FILES_H_
#define SIPHON_LAUNCH_PROCESS_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace siphon {

// Files that mpirun has open at once for so many workers, as counted with Open MPI 4.1, and some
// more.
int64_t FilesOfMpirun(int workers);

// Lets this process, and those that it starts, open `files` files at once where its user may
// (RLIMIT_NOFILE): mpirun that may not waits for ever, without a word. Errors: FailedPrecondition
// with the limit and how to raise it.
absl::Status AllowOpenFiles(int64_t files);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_OPEN_FILES_H_
