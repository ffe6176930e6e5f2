#ifndef SIPHON_LAUNCH_PROCESS_RUN_TOGETHER_H_
#define SIPHON_LAUNCH_PROCESS_RUN_TOGETHER_H_

#include <functional>

namespace siphon {

// Calls run(0) to run(count - 1), in this order but several at once: on as many threads as the
// process has cores, the caller's and those of calls within `run` among them. Returns when all
// have. `run` must not throw.
void RunTogether(int count, const std::function<void(int)>& run);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_RUN_TOGETHER_H_
