#ifndef SIPHON_PIPELINE_TRANSPORT_IN_PROCESS_TRANSPORT_H_
#define SIPHON_PIPELINE_TRANSPORT_IN_PROCESS_TRANSPORT_H_

#include <memory>
#include <vector>

#include "pipeline/transport/transport.h"

namespace siphon {

// One transport for each worker, all in this process: worker w's is element w, used by one thread.
// Strict rendezvous (a send is done only when its receiver has copied it), so a program that needs
// buffering hangs here, not in the field. All pairs and lanes exist. `check` is called with the
// waiting worker's transport only; when it ends a wait, what that worker has started and is not
// done never will be, and its spans may go: peers read and write them, and it may be the first to
// leave.
std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int workers, LivenessCheck check);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_IN_PROCESS_TRANSPORT_H_
