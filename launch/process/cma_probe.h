#ifndef SIPHON_LAUNCH_PROCESS_CMA_PROBE_H_
#define SIPHON_LAUNCH_PROCESS_CMA_PROBE_H_

namespace siphon {

// Whether one process may read another's memory here, as Open MPI does for large messages
// (cross-memory attach). Containers often forbid it. Tries it, between two children of this
// process.
bool CrossMemoryAttachWorks();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_CMA_PROBE_H_
